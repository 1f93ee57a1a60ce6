/* SPDX-License-Identifier: Apache-2.0 */
/* Packs what a bug report needs: bugreport.py, which is in the program as text, does it with
 * scripts/capture-root. */
#pragma once

extern const char python_bugreport[];
extern const char python_capture_root[];

/*
 * Becomes Python, which writes the archive to `output`, prints what is in it, and ends with the exit code.
 * `report` is the file of a run's report, or NULL. Returns only if that failed: a negative errno, -ENOENT
 * without python3.
 */
int bugreport_become(const char *output, const char *version, const char *report);
