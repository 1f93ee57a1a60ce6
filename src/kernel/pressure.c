/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "pressure.h"

/* "avg10=1.50": the next word of *rest. */
static int average_parse(Text *rest, const char *name, double *ret)
{
    Text word;
    Text key;
    double percent = 0;
    if (!text_word(rest, &word) || !text_until(&word, '=', &key) || !text_equal(key, name) ||
        text_decimal(word, &percent) < 0 || !(percent <= 100))
        return -EBADMSG;
    *ret = percent;
    return 0;
}

/* What follows "some" or "full". A truncated line lacks the last field, or its end. */
static int averages_parse(Text rest, double *ret_avg10, double *ret_avg60, uint64_t *ret_usec)
{
    Text total;
    Text key;
    double avg300 = 0;
    double avg10 = 0;
    double avg60 = 0;
    if (average_parse(&rest, "avg10", &avg10) < 0 || average_parse(&rest, "avg60", &avg60) < 0 ||
        average_parse(&rest, "avg300", &avg300) < 0 || !text_word(&rest, &total) ||
        !text_until(&total, '=', &key) || !text_equal(key, "total") || text_u64(total, 10, ret_usec) < 0)
        return -EBADMSG;
    *ret_avg10 = avg10;
    *ret_avg60 = avg60;
    return 0;
}

int pressure_parse(Text text, Pressure *ret)
{
    Pressure pressure = {0};
    uint64_t full_usec = 0;
    bool some = false;
    TEXT_FOR_EACH_LINE (line, text) {
        Text kind;
        int r = 0;
        if (!text_word(&line, &kind))
            continue;
        if (text_equal(kind, "some")) {
            r = averages_parse(line, &pressure.some_avg10, &pressure.some_avg60, &pressure.some_usec);
            some = true;
        } else if (text_equal(kind, "full"))
            r = averages_parse(line, &pressure.full_avg10, &pressure.full_avg60, &full_usec);
        if (r < 0)
            return r;
    }
    if (!some)
        return -EBADMSG;
    *ret = pressure;
    return 0;
}

int pressure_read(const Root *root, const char *what, Pressure *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    char path[32];
    snprintf(path, sizeof path, "proc/pressure/%s", what);
    int r = root_read(root, path, ROOT_FILE_MAX, &buffer);
    return r < 0 ? r : pressure_parse((Text){buffer.data, buffer.size}, ret);
}
