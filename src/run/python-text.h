/* SPDX-License-Identifier: Apache-2.0 */
/* The texts that a process without the guard is asked to run, as the build has embedded them. */
#pragma once

extern const char python_where[];        /* guard/python/where.py */
extern const char python_where_remote[]; /* python/where_remote.py */
