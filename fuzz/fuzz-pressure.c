/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "pressure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text text = {(const char *)data, size};
    Pressure pressure;
    if (pressure_parse(text, &pressure) == 0 && !(pressure.some_avg10 >= 0 && pressure.some_avg10 <= 100 &&
                                                  pressure.full_avg60 >= 0 && pressure.full_avg60 <= 100))
        __builtin_trap();
    return 0;
}
