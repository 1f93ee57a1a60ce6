/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of the page where it could not be built: see web/. */
#include "page.h"

const char page_template[] = "";
const size_t page_template_size = 0;
const char page_policy[] = "default-src 'none'";
