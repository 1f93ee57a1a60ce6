/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands say on standard error, and the exit codes that follow (sysexits.h). */
#pragma once

#include <stdio.h>
#include <sysexits.h>

#include "child.h"
#include "recorder.h"

/* One line on standard error, after the program's name. Returns code. */
int complain(int code, const char *format, ...) _printf_(2, 3);

/* Where a command writes its result: standard output. */
FILE *result_stream(void);

/* For the C API, which must not print: from now on, this thread writes results and messages to these streams,
 * messages without the program's name. NULL: to the standard streams again. */
void output_collect(FILE *result, FILE *messages);
bool output_is_collected(void);

/* The user's command could not be started. The exit code is that of a shell. name: of our command. */
int start_complain(const char *name, const char *command, ChildStage stage, int error);

/* The command runs without the guard. error: of guard_serve; library: its path. */
void guard_complain(const char *library, int error);

/* recorder_open has failed. name: of our command, or its option. */
int recorder_complain(const char *name, const char *path, int error);

/* Says how much was recorded, and what to do with it. After the last recorder_end. */
void recorder_say(Recorder *recorder, const char *path);

/* Says once that the recording has stopped, if it has. */
void recorder_say_stopped(Recorder *recorder, const char *path);

/* Reads a recording that has samples. EX_OK, or the exit code for what went wrong, which was said. name: of
 * our command. */
int recording_take(const char *name, const char *path, History *ret);
