/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "proc-environ.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LauncherNames names = launcher_names_parse((Text){(const char *)data, size});
    if (strpbrk(names.job, "\"\\\n{}") || strpbrk(names.node, "\"\\\n{}") ||
        text_digits(text_of(names.rank)).size != strlen(names.rank) ||
        (launcher_number(names.ranks) == U64_UNKNOWN) != (names.ranks[0] == '\0') ||
        names.launcher >= LAUNCHERS)
        __builtin_trap();
    return 0;
}
