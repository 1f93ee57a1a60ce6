/* SPDX-License-Identifier: Apache-2.0 */
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

/* The averages that follow "some" or "full". One more field must follow, or the last figure may be truncated.
 */
static int averages_parse(Text rest, double *ret_avg10, double *ret_avg60)
{
    Text more;
    double avg10 = 0;
    double avg60 = 0;
    if (average_parse(&rest, "avg10", &avg10) < 0 || average_parse(&rest, "avg60", &avg60) < 0 ||
        !text_word(&rest, &more))
        return -EBADMSG;
    *ret_avg10 = avg10;
    *ret_avg60 = avg60;
    return 0;
}

int pressure_parse(Text text, Pressure *ret)
{
    Pressure pressure = {0};
    bool some = false;
    TEXT_FOR_EACH_LINE (line, text) {
        Text kind;
        int r = 0;
        if (!text_word(&line, &kind))
            continue;
        if (text_equal(kind, "some")) {
            r = averages_parse(line, &pressure.some_avg10, &pressure.some_avg60);
            some = true;
        } else if (text_equal(kind, "full"))
            r = averages_parse(line, &pressure.full_avg10, &pressure.full_avg60);
        if (r < 0)
            return r;
    }
    if (!some)
        return -EBADMSG;
    *ret = pressure;
    return 0;
}

int pressure_read(const Root *root, Pressure *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = root_read(root, "proc/pressure/memory", ROOT_FILE_MAX, &buffer);
    return r < 0 ? r : pressure_parse((Text){buffer.data, buffer.size}, ret);
}
