/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "advice.h"

/* Whether a fix or its command contains `what`. */
static inline bool fixes_mention(const Fixes *fixes, const char *what)
{
    for (size_t i = 0; i < fixes->n; i++)
        if (strstr(fixes->items[i].what, what) ||
            (fixes->items[i].command && strstr(fixes->items[i].command, what)))
            return true;
    return false;
}
