/* SPDX-License-Identifier: Apache-2.0 */
/* `report` for people and for scripts. */
#pragma once

#include "fleet.h"
#include "json.h"
#include "report-view.h"
#include "terminal.h"

/* The verdicts and what to do about them, then what was recorded, with a sparkline per process. Several
 * recordings: which ranks are late, and a row for each. */
void show_report(const Terminal *terminal, const FleetView *fleet);

/* Schema "shmguard.report/1"; of several recordings, what they say together. 0 or -ENOMEM. */
int json_report(FILE *out, bool indented, const FleetView *fleet);

/* Parts that the page needs, too. NULL: no memory. */
json_t *json_verdict(const ReportView *view, const Verdict *verdict);
json_t *json_recording(const ReportView *view);
json_t *json_report_peaks(const ReportView *view);
json_t *json_event(const Event *event);
