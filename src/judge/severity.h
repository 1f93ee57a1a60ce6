/* SPDX-License-Identifier: Apache-2.0 */
/* How bad a finding of `doctor` or a verdict of `report` is. */
#pragma once

typedef enum Severity {
    SEVERITY_GOOD, /* of a verdict that nothing is wrong; findings start at SEVERITY_INFO */
    SEVERITY_INFO,
    SEVERITY_WARNING,
    SEVERITY_CRITICAL,
} Severity;

const char *severity_name(Severity severity);
