/* SPDX-License-Identifier: Apache-2.0 */
/* The version of Python that a process runs, as the name of its program tells (/proc/PID/exe). */
#pragma once

#include "root.h"

/* N of "…/python3.N"; 0: the name does not tell, or the interpreter is a free-threaded or a debug build. */
unsigned python_version_parse(Text program);
unsigned python_version_read(const Root *root, int pid);
