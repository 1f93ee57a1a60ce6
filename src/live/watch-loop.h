/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `watch` does while it runs: it samples the machine, or plays a recording, draws, and reads keys.
 * Errors are negative errno.
 */
#pragma once

#include "history.h"
#include "watch-screen.h"

typedef struct Watch Watch;

/* This machine, or with a pid that process and all below it. -ENOENT: there is no /proc; -ESRCH: no such
 * process. */
int watch_open(int pid, double interval, const Terminal *terminal, Watch **ret);
/* The history becomes part of the watch; name is the recording's, and outlives it. */
int watch_open_recording(History *history, const char *name, bool at_end, const Terminal *terminal,
                         Watch **ret);
void watch_close(Watch *watch);
static inline void watch_closep(Watch **watch)
{
    watch_close(*watch);
}
#define _cleanup_watch_ _cleanup_(watch_closep)

/* One picture of everything, which is valid until the watch is closed. */
int watch_once(Watch *watch, const Picture **ret);
/* Until the user quits, or a signal ends the process. If the screen is not good, nothing was shown. */
int watch_show(Watch *watch, ScreenError *ret_screen);
