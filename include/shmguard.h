/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions that shmguard answers, for other programs: link with -lshmguard (pkg-config shmguard).
 *
 * Each function answers as the command of that name does with --json, for this machine as this process sees
 * it. It returns the exit code of the command: below 64, *ret_json is one JSON object (the manual page
 * describes it); from 64 on (sysexits.h), *ret_error is one line without newline that says what is wrong. The
 * other pointer is left as it is. The caller frees the text with shmguard_free.
 *
 * The functions may be called by several threads at once, also in processes that use CUDA: they neither print
 * nor exit, start no program, and leave signals, locale and descriptors as they were. A program that catches
 * SIGURG may get one from ps and doctor, which ask the kernel for leases on files in /dev/shm.
 *
 * `options` are the words of the command's options, up to NULL: {"--pid", "1234", NULL}. NULL: none. Options
 * that start a command (plan --measure) are refused.
 *
 * Functions are only ever added. A program that needs a later one checks SHMGUARD_API_VERSION when it is
 * compiled.
 */
#ifndef SHMGUARD_H
#define SHMGUARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMGUARD_API_VERSION 1

/* The version of the library, such as "1.2.3". */
const char *shmguard_version(void);

/* What is wrong here, and what to do. Returns 0 (all is well), 1 (warning) or 2 (critical). */
int shmguard_doctor(const char *const *options, char **ret_json, char **ret_error);

/* Which process holds which shared memory. */
int shmguard_ps(const char *const *options, char **ret_json, char **ret_error);

/* How much shared memory a job needs. */
int shmguard_plan(const char *const *options, char **ret_json, char **ret_error);

/* What happened, from `size` bytes of a log. */
int shmguard_explain(const char *log, size_t size, char **ret_json, char **ret_error);

void shmguard_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
