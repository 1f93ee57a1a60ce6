/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is never incomplete, and of which it is known beforehand whether it can be written: it is
 * written under another name in the same directory, and then renamed. What is not a regular file (a pipe,
 * /dev/stderr) is opened at once and written to directly.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "macro.h"

typedef struct ReportFile {
    int directory;
    int direct; /* the descriptor of what is not a regular file */
    char *name;
    bool fleeting; /* it is written again soon: it need not be on the disk before it replaces the old one */
} ReportFile;

#define REPORT_FILE_NONE      ((ReportFile){.directory = -EBADF, .direct = -EBADF})
#define _cleanup_report_file_ _cleanup_(report_file_close)

/* Leaves nothing behind yet. Negative errno: the file could not be written. */
int report_file_open(const char *path, ReportFile *ret);
void report_file_close(ReportFile *file);

/* What `fill` writes becomes the file. Negative errno, also of `fill`: an existing file is then unchanged. */
int report_file_write(const ReportFile *file, int (*fill)(FILE *out, const void *context),
                      const void *context);
