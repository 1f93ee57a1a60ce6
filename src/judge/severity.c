/* SPDX-License-Identifier: Apache-2.0 */
#include "severity.h"
#include "language.h"

const char *severity_name(Severity severity)
{
    static const char *const names[] = {
        [SEVERITY_GOOD] = N_("good"),
        [SEVERITY_INFO] = N_("info"),
        [SEVERITY_WARNING] = N_("warning"),
        [SEVERITY_CRITICAL] = N_("critical"),
    };
    return names[severity];
}
