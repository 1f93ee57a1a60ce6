/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the guard that are torn on purpose, to show that their checks notice (test-checks.c). Each file
 * torn-NAME.c is NAME.c and has functions that write into its table what no code of the guard would. */
#pragma once

typedef struct Tear {
    const char *what;
    void (*tear)(void); /* of a process with two tensors */
} Tear;

/* Each ends with a Tear without a function. */
extern const Tear pool_tears[];
extern const Tear views_tears[];
extern const Tear pins_tears[];
