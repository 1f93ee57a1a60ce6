/* SPDX-License-Identifier: Apache-2.0 */
/* What `serve` does while it runs: samples, and gives what is asked for. */
#pragma once

#include "http-server.h"
#include "report-file.h"

typedef struct ServeSettings {
    double interval;
    size_t processes_most; /* with metrics of their own */
    HttpServer *server;    /* NULL: none */
    ReportFile *textfile;  /* NULL: none */
} ServeSettings;

/* Until a signal ends it. Returns the exit code; errors were said. `ready` is called once, when there is
 * something to serve. */
int serve_run(const ServeSettings *settings, void (*ready)(const void *context), const void *context);
