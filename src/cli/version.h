/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of --version: the first line is the version alone, for scripts; the others are for bug reports.
 */
#pragma once

#include <stdio.h>

void version_print(FILE *out);
