/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a traceback or log to its cause. Fed piece by piece, so that a log of any size takes little memory;
 * binary junk does no harm. Pure: reads nothing itself.
 */
#pragma once

#include "diagnosis.h"

typedef struct Explainer Explainer;

Explainer *explainer_new(void); /* NULL: no memory */
void explainer_free(Explainer *explainer);
int explainer_feed(Explainer *explainer, const char *bytes, size_t n); /* -ENOMEM */

/* machine may be NULL: the fixes then suit any environment. The explainer is ready for another log
 * afterwards. -ENOMEM */
int explainer_finish(Explainer *explainer, const Machine *machine, const GuardOffer *guard, Arena *arena,
                     Diagnosis *ret);
