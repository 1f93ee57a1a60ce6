/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands the processes of a moment from the thread that looks at the job, such as a recorder's, to the
 * supervisor, so that each process is looked at once. Neither waits for the other: a moment that was not
 * taken in time is replaced by the next one.
 */
#pragma once

#include "history.h"

typedef struct MomentRelay MomentRelay;

/* -ENOMEM, -EMFILE. */
int moment_relay_open(MomentRelay **ret);
void moment_relay_free(MomentRelay *relay); /* NULL is fine */

/* For the thread that looks. Without memory the supervisor gets nothing, and looks for itself. */
void moment_relay_put(MomentRelay *relay, const Moment *moment);

/* For the supervisor: readable when there is a moment to take. It has processes only, without their commands,
 * and is valid until the next one is taken. False: there is no new one. */
int moment_relay_fd(const MomentRelay *relay);
bool moment_relay_take(MomentRelay *relay, Moment *ret);
