/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "http-request.h"

/* The first byte chooses what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char token[] = "0123456789abcdef";
    if (size == 0)
        return 0;
    Text text = {(const char *)data + 1, size - 1};
    ListenAddress address;
    uint64_t number;
    switch (data[0]) {
    case 'l':
        if (listen_parse(text, &address) == 0) {
            /* What it says it listens on is understood as the same. */
            _cleanup_(buffer_free) Buffer said = {0};
            _cleanup_(buffer_free) Buffer again = {0};
            ListenAddress other;
            listen_format(&address, &said);
            if (listen_parse((Text){said.data, said.size}, &other) < 0 || other.loopback != address.loopback)
                __builtin_trap();
            listen_format(&other, &again);
            if (strcmp(buffer_text(&said), buffer_text(&again)) != 0)
                __builtin_trap();
        }
        break;
    case 'h':
        (void)host_is_literal(text);
        break;
    case 'a':
        (void)accept_is_openmetrics(text);
        break;
    case 't':
        (void)token_is_usable(text);
        break;
    case 'b':
        if (authorization_has(text, text_of(token)) && !text_contains(text, token))
            __builtin_trap();
        break;
    case 'e':
        (void)event_id_parse(text, TEXT("0123456789abcdef"), &number);
        break;
    default:
        break;
    }
    return 0;
}
