/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breaks the guard on purpose: it does not interpose fstat, so a segment is the same file each time it is
 * issued. Included before its sources, it makes the library that tests/guard/mixed.py must catch, which shows
 * that the test can fail.
 */
#pragma once

#include <sys/stat.h>

int fstat_not_exported(int fd, struct stat *st);
int fstat64_not_exported(int fd, struct stat64 *st);

#define fstat   fstat_not_exported
#define fstat64 fstat64_not_exported
