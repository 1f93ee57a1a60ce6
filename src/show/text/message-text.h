/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between the items of a list, and between its parts. */
#pragma once

#include "language.h"

#define MESSAGE_ITEMS _(", ")
#define MESSAGE_PARTS _("; ")
#define MESSAGE_ASIDE _(" (%s)")
#define MESSAGE_COLON _(": ")
