/*
 * Breaks the guard on purpose: it does not stand in for fstat, so a segment is the same file each time that
 * it is issued. Included in front of its sources, it makes the library that tests/guard/mixed.py must catch,
 * so that the test is known to be able to fail.
 */
#pragma once

#include <sys/stat.h>

int fstat_not_exported(int fd, struct stat *st);
int fstat64_not_exported(int fd, struct stat64 *st);

#define fstat   fstat_not_exported
#define fstat64 fstat64_not_exported
