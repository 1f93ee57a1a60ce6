/* SPDX-License-Identifier: Apache-2.0 */
/* What po/compile makes of po/zh_CN.po. */
#pragma once

#include "language.h"

extern const Translation chinese[];
extern const size_t chinese_n;

/* Those that web/ uses. */
extern const Translation chinese_of_page[];
extern const size_t chinese_of_page_n;
