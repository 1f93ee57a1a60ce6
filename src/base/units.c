/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "units.h"

/* Splits "1.5 GiB" into 1.5 and "GiB". */
static int number_and_unit(Text a, double *ret_number, Text *ret_unit)
{
    a = text_trim(a);
    size_t n = 0;
    while (n < a.size && ((a.data[n] >= '0' && a.data[n] <= '9') || a.data[n] == '.'))
        n++;
    double number = 0;
    int r = text_decimal((Text){a.data, n}, &number);
    if (r < 0)
        return r;
    *ret_number = number;
    *ret_unit = text_trim((Text){a.data + n, a.size - n});
    return 0;
}

static bool unit_is(Text unit, const char *name)
{
    return unit.size == strlen(name) && strncasecmp(unit.data, name, unit.size) == 0;
}

int size_parse(Text a, uint64_t *ret_bytes)
{
    uint64_t whole = 0;
    if (text_u64(text_trim(a), 10, &whole) == 0) { /* exact, where a double would round */
        *ret_bytes = whole;
        return 0;
    }
    double number = 0;
    Text unit;
    int r = number_and_unit(a, &number, &unit);
    if (r < 0)
        return r;

    static const char letters[] = "KMGTPE";
    unsigned power = 0;
    if (unit.size > 0 && !unit_is(unit, "B")) {
        const char *letter = strchr(letters, unit.data[0] & ~0x20);
        Text rest = {unit.data + 1, unit.size - 1};
        if (!letter || *letter == '\0' || !(rest.size == 0 || unit_is(rest, "B") || unit_is(rest, "iB")))
            return -EINVAL;
        power = (unsigned)(letter - letters) + 1;
    }
    double bytes = ldexp(number, (int)(10 * power));
    if (bytes >= 0x1p64)
        return -ERANGE;
    *ret_bytes = (uint64_t)(bytes + 0.5);
    return 0;
}

int size_wish_parse(Text a, SizeWish *ret)
{
    SizeWish wish = {.kind = WISH_SIZE};
    if (text_equal(a, "auto"))
        wish.kind = WISH_AUTO;
    else if (text_equal(a, "off"))
        wish.kind = WISH_OFF;
    else {
        int r = size_parse(a, &wish.bytes);
        if (r < 0)
            return r;
        if (wish.bytes < WISH_LEAST_BYTES || wish.bytes > INT64_MAX)
            return -ERANGE;
    }
    *ret = wish;
    return 0;
}

int duration_parse(Text a, double *ret_seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    double number = 0;
    Text unit;
    if (number_and_unit(a, &number, &unit) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (text_equal(unit, units[i].unit) && isfinite(number * units[i].seconds)) {
            *ret_seconds = number * units[i].seconds;
            return 0;
        }
    return -EINVAL;
}

char *size_format(uint64_t bytes, char buf[static SIZE_TEXT_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes == U64_UNKNOWN) {
        snprintf(buf, SIZE_TEXT_MAX, "?");
        return buf;
    }
    unsigned power = 0;
    double value = (double)bytes;
    while (value >= 1023.95 && power + 1 < ARRAY_SIZE(units)) { /* 1023.95 would print as 1024.0 */
        value /= 1024;
        power++;
    }
    snprintf(buf, SIZE_TEXT_MAX, power == 0 ? "%.0f %s" : "%.1f %s", value, units[power]);
    return buf;
}

char *size_format_flag(uint64_t bytes, char buf[static SIZE_TEXT_MAX])
{
    const uint64_t mib = UINT64_C(1) << 20;
    uint64_t mibs = bytes / mib + (bytes % mib != 0);
    if (mibs > 0 && mibs % 1024 == 0)
        snprintf(buf, SIZE_TEXT_MAX, "%llug", (unsigned long long)(mibs / 1024));
    else
        snprintf(buf, SIZE_TEXT_MAX, "%llum", (unsigned long long)mibs);
    return buf;
}

char *duration_format(double seconds, char buf[static SIZE_TEXT_MAX])
{
    if (seconds < 120)
        snprintf(buf, SIZE_TEXT_MAX, "%.0f s", seconds);
    else if (seconds < 2 * 3600)
        snprintf(buf, SIZE_TEXT_MAX, "%.0f min", seconds / 60);
    else if (seconds < 2 * 86400)
        snprintf(buf, SIZE_TEXT_MAX, "%.0f h", seconds / 3600);
    else
        snprintf(buf, SIZE_TEXT_MAX, "%.0f d", seconds / 86400);
    return buf;
}

char *signal_format(int signo, char buf[static SIZE_TEXT_MAX])
{
    const char *name = sigabbrev_np(signo);
    if (name)
        snprintf(buf, SIZE_TEXT_MAX, "SIG%s", name);
    else if (signo >= SIGRTMIN && signo <= SIGRTMAX)
        snprintf(buf, SIZE_TEXT_MAX, "SIGRTMIN+%d", signo - SIGRTMIN);
    else
        snprintf(buf, SIZE_TEXT_MAX, "signal %d", signo);
    return buf;
}
