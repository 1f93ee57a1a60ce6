/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "proc-environ.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LauncherNames names = launcher_names_parse((Text){(const char *)data, size});
    if (strpbrk(names.job, "\"\\\n{}") || text_digits(text_of(names.rank)).size != strlen(names.rank))
        __builtin_trap();
    return 0;
}
