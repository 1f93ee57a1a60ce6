/* SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>

#include "fuzz.h"
#include "terminal.h"

/* Whatever a stranger calls his files: what is shown fits, and steers no terminal. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    setlocale(LC_CTYPE, "C.UTF-8");
    size_t columns = data[0] % 64;
    Text raw = {(const char *)data + 1, size - 1};
    _cleanup_buffer_ Buffer safe = {0};
    _cleanup_buffer_ Buffer fitted = {0};
    if (text_escape(raw, &safe) < 0 ||
        text_shorten((Text){buffer_text(&safe), safe.size}, columns, "…", &fitted) < 0)
        return 0;
    if (text_columns((Text){buffer_text(&fitted), fitted.size}) > columns)
        __builtin_trap();

    buffer_clear(&safe);
    if (text_escape_prose(raw, &safe) < 0)
        return 0;
    for (size_t i = 0; i < safe.size; i++)
        if ((unsigned char)safe.data[i] < 0x20 || safe.data[i] == 0x7F)
            __builtin_trap();
    return 0;
}
