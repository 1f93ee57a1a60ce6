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
    const void *context;
    /* There is something to serve. Called once. */
    void (*ready)(const void *context);
    /* The textfile could not be written. Called once for several failures in a row. */
    void (*textfile_lost)(const void *context, int error);
} ServeSettings;

/* Until a signal ends it. Returns negative errno; -ENOENT: there is no /proc. */
int serve_run(const ServeSettings *settings);
