/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "tune-rate.h"

static void number_check(void *context, double number)
{
    (void)context;
    if (!(number >= 0 && number < __builtin_inf()))
        __builtin_trap();
}

/* The output of a training, whatever it is: numbers that are some, and lines that end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static RateReader reader; /* too large for the stack of a fuzzer with many of them */
    _cleanup_buffer_ Buffer error = {0};
    if (rate_reader_open("([^: ]*)[,%/ ]", &reader, &error) < 0)
        __builtin_trap();
    size_t half = size / 2;
    rate_reader_feed(&reader, (Text){(const char *)data, half}, number_check, NULL);
    rate_reader_feed(&reader, (Text){(const char *)data + half, size - half}, number_check, NULL);
    if (reader.matches + reader.nonsense > reader.lines)
        __builtin_trap();
    rate_reader_close(&reader);
    double number = 0;
    if (rate_number_parse((Text){(const char *)data, size}, &number) == 0)
        number_check(NULL, number);
    return 0;
}
