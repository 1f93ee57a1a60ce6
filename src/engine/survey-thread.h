/* SPDX-License-Identifier: Apache-2.0 */
/* Surveys the machine in a thread of its own, one survey after the other: a survey takes long, and a process
 * whose memory the kernel has locked delays it and nothing else. */
#pragma once

#include "survey.h"

typedef struct SurveyThread SurveyThread;

typedef struct SurveyResult {
    Survey survey;       /* the caller frees it */
    unsigned flags;      /* that were asked for */
    double cost_seconds; /* CPU time */
} SurveyResult;

int survey_thread_open(SurveyThread **ret);

/* NULL is fine. A survey that hangs is not waited for: what it uses is kept until the program ends. */
void survey_thread_close(SurveyThread *thread);

/* False: one is under way, or no thread could be started. flags: SurveyFlags. */
bool survey_thread_ask(SurveyThread *thread, unsigned flags);

/* Readable when it is done. */
int survey_thread_fd(const SurveyThread *thread);

/* Only when survey_thread_fd is readable. As survey_take. */
int survey_thread_take(SurveyThread *thread, SurveyResult *ret);
