/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what is known of a job's end to its cause, and what to do about it. Pure: reads nothing itself.
 *
 * What was seen (faults with their addresses, how processes ended, what the kernel counted and logged)
 * outranks what processes wrote. The first death of the job is its cause, not the exception that the trainer
 * raises because of it. Facts that contradict each other lower the confidence; where nothing shows the cause,
 * it is unknown.
 */
#pragma once

#include "diagnosis.h"

/* machine may be NULL: the fixes then suit any environment. -ENOMEM */
int cause_judge(const Evidence *evidence, const Machine *machine, const GuardOffer *guard, Arena *arena,
                Diagnosis *ret);

/* Smaller parameters (batches, workers) may let the next attempt succeed. */
bool cause_helped_by_less(CauseId id);
