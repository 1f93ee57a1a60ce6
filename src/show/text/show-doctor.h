/* SPDX-License-Identifier: Apache-2.0 */
/* `doctor` for people and for scripts. */
#pragma once

#include "checks.h"
#include "json.h"
#include "terminal.h"

void show_doctor(const Terminal *terminal, const Machine *machine, const GuardOffer *guard,
                 const Findings *findings);

/* Schema "shmguard.doctor/1". 0 or -ENOMEM. */
int json_doctor(FILE *out, bool indented, const Machine *machine, const GuardOffer *guard,
                const Findings *findings);
