/* SPDX-License-Identifier: Apache-2.0 */
/* What to do, for people and for scripts: of every command that gives advice. */
#pragma once

#include "advice.h"
#include "json.h"
#include "terminal.h"

/* Numbered; the command on a line of its own, ready to copy. */
void show_fixes(const Terminal *terminal, unsigned indent, const Fixes *fixes);
json_t *json_fixes(const Fixes *fixes);
