/* SPDX-License-Identifier: Apache-2.0 */
#include "severity.h"

const char *severity_name(Severity severity)
{
    static const char *const names[] = {
        [SEVERITY_GOOD] = "good",
        [SEVERITY_INFO] = "info",
        [SEVERITY_WARNING] = "warning",
        [SEVERITY_CRITICAL] = "critical",
    };
    return names[severity];
}
