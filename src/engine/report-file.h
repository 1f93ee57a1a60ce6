/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is there whole or not at all, and of which it is known beforehand whether it can be written:
 * written beside its place and moved there. What is no plain file (a pipe, /dev/stderr) is opened at once and
 * written to.
 */
#pragma once

#include <stdio.h>

#include "macro.h"

typedef struct ReportFile {
    int directory;
    int direct; /* of what is no plain file */
    char *name;
} ReportFile;

#define REPORT_FILE_NONE      ((ReportFile){.directory = -EBADF, .direct = -EBADF})
#define _cleanup_report_file_ _cleanup_(report_file_close)

/* Nothing is left there yet. Negative errno when the file could not be written. */
int report_file_open(const char *path, ReportFile *ret);
void report_file_close(ReportFile *file);

/* What `fill` writes becomes the file. Negative errno, its own included; the old file is then still there. */
int report_file_write(const ReportFile *file, int (*fill)(FILE *out, const void *context),
                      const void *context);
