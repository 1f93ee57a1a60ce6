/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "testimony.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Testimony testimony;
    memset(&testimony, 0, sizeof testimony);
    memcpy(&testimony, data, size < sizeof testimony ? size : sizeof testimony);
    if (testimony_is_sane(&testimony, size) &&
        (size > sizeof testimony || testimony.n > size || testimony.n > sizeof testimony.text))
        __builtin_trap();
    return 0;
}
