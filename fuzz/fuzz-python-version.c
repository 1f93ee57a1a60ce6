/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "python-version.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)python_version_parse((Text){(const char *)data, size});
    return 0;
}
