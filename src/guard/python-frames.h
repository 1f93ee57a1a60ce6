/* SPDX-License-Identifier: Apache-2.0 */
/* The Python stack of the calling thread, without the interpreter's lock. python-frames.c has the argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Where a frame is; valid while the thread is inside the C function that Python has called. */
typedef struct PythonPlace {
    void *code;
    int offset;
} PythonPlace;

/* What Python itself says about a frame. */
enum { FRAMES_EXPECTED = 4 };
typedef struct PythonExpected {
    const char *file;
    const char *name;
    int line;
} PythonExpected;

/* Under the interpreter's lock: whether the stack can be read here. Before the others. The newest frame
 * first. */
bool frames_check(const PythonExpected *expected, size_t n);

/* The newest first. None: the thread runs no Python. */
typedef struct PythonFrames {
    void *next;
    unsigned depth;
} PythonFrames;
void frames_begin(PythonFrames *ret);
bool frames_next(PythonFrames *frames, PythonPlace *ret);

/* The end of it, if it is longer; what is not ASCII becomes "?". */
bool frame_file(const PythonPlace *place, char *ret, size_t size);
bool frame_name(const PythonPlace *place, char *ret, size_t size);
int frame_line(const PythonPlace *place);
