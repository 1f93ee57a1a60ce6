/* SPDX-License-Identifier: Apache-2.0 */
/* `explain` for people and for scripts; the cause in JSON for every command that names one. */
#pragma once

#include "explain.h"
#include "json.h"
#include "terminal.h"

void show_explanation(const Terminal *terminal, const Diagnosis *explanation);

/* Schema "shmguard.explain/1". 0 or -ENOMEM. */
int json_explanation(FILE *out, bool indented, const Diagnosis *explanation);

const char *confidence_words(double confidence); /* "certain", "likely", "a guess" */

/* { id, confidence, summary, evidence, pid } */
json_t *json_cause(const Cause *cause);
