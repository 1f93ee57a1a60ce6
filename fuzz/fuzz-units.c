/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    SizeWish wish = {.kind = WISH_OFF};
    double seconds = 0;
    if (size_wish_parse(text, &wish) == 0 && wish.kind == WISH_SIZE)
        if (wish.bytes < WISH_LEAST_BYTES || wish.bytes > INT64_MAX)
            __builtin_trap();
    if (duration_parse(text, &seconds) == 0 && !(seconds >= 0))
        __builtin_trap();
    return 0;
}
