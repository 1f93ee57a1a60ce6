/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that leak: for `report`, `run --where`, `where`, the page and scripts. */
#pragma once

#include "json.h"
#include "site-view.h"
#include "terminal.h"

/* Nothing if it was not looked for. */
void show_sites(const Terminal *terminal, const SiteView *view);

/* Fields of the open object: `sites`, and beside it what has no line. */
void json_sites(JsonWriter *writer, const SiteView *view);

/* A line, an attribute or a type. NULL: no memory. */
json_t *json_site(const LeakSite *site);
