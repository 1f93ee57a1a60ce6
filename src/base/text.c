/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <wchar.h>

#include "text.h"

uint64_t text_hash(Text a)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < a.size; i++)
        hash = (hash ^ (unsigned char)a.data[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32; /* the low bits, which choose a slot, depend on all of it */
}

Text text_of(const char *s)
{
    return s ? (Text){s, strlen(s)} : (Text){"", 0};
}

bool text_equal(Text a, const char *b)
{
    size_t n = strlen(b);
    return a.size == n && memcmp(a.data, b, n) == 0;
}

bool text_starts(Text a, const char *prefix)
{
    size_t n = strlen(prefix);
    return a.size >= n && memcmp(a.data, prefix, n) == 0;
}

bool text_ends(Text a, const char *suffix)
{
    size_t n = strlen(suffix);
    return a.size >= n && memcmp(a.data + a.size - n, suffix, n) == 0;
}

bool text_contains(Text a, const char *needle)
{
    return a.size > 0 && memmem(a.data, a.size, needle, strlen(needle)) != NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

Text text_skip(Text a, size_t n)
{
    n = MIN(n, a.size);
    return n == 0 ? a : (Text){a.data + n, a.size - n};
}

Text text_digits(Text a)
{
    size_t n = 0;
    while (n < a.size && a.data[n] >= '0' && a.data[n] <= '9')
        n++;
    return (Text){a.data, n};
}

bool text_after(Text a, const char *literal, Text *ret)
{
    size_t n = strlen(literal);
    const char *found = a.size == 0 ? NULL : memmem(a.data, a.size, literal, n);
    if (!found)
        return false;
    *ret = text_skip(a, (size_t)(found - a.data) + n);
    return true;
}

static Text text_trim_start(Text a)
{
    while (a.size > 0 && is_blank(a.data[0]))
        a = text_skip(a, 1);
    return a;
}

Text text_trim(Text a)
{
    a = text_trim_start(a);
    while (a.size > 0 && is_blank(a.data[a.size - 1]))
        a.size--;
    return a;
}

bool text_until(Text *rest, char separator, Text *ret_part)
{
    if (rest->size == 0)
        return false;
    const char *end = memchr(rest->data, separator, rest->size);
    size_t n = end ? (size_t)(end - rest->data) : rest->size;
    *ret_part = (Text){rest->data, n};
    *rest = text_skip(*rest, end ? n + 1 : n);
    return true;
}

bool text_line(Text *rest, Text *ret_line)
{
    return text_until(rest, '\n', ret_line);
}

Text text_whole_lines(Text a)
{
    const char *end = a.size > 0 ? memrchr(a.data, '\n', a.size) : NULL;
    return (Text){a.data, end ? (size_t)(end - a.data) + 1 : 0};
}

bool text_word(Text *rest, Text *ret_word)
{
    Text a = text_trim_start(*rest);
    if (a.size == 0)
        return false;
    size_t n = 0;
    while (n < a.size && !is_blank(a.data[n]))
        n++;
    *ret_word = (Text){a.data, n};
    *rest = text_skip(a, n);
    return true;
}

bool text_key(Text line, const char *key, Text *ret_value)
{
    if (line.size == 0 ||
        line.data[0] != key[0]) /* like nearly all lines; files like status are read often */
        return false;
    size_t n = strlen(key);
    if (!text_starts(line, key) || line.size <= n || line.data[n] != ':')
        return false;
    *ret_value = text_trim(text_skip(line, n + 1));
    return true;
}

int text_u64(Text a, unsigned base, uint64_t *ret)
{
    if (a.size == 0)
        return -EINVAL;
    uint64_t value = 0;
    for (size_t i = 0; i < a.size; i++) {
        char c = a.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 255;
        if (digit >= base)
            return -EINVAL;
        if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
            return -ERANGE;
    }
    *ret = value;
    return 0;
}

int text_u32(Text a, unsigned base, uint32_t *ret)
{
    uint64_t value = 0;
    int r = text_u64(a, base, &value);
    if (r < 0)
        return r;
    if (value > UINT32_MAX)
        return -ERANGE;
    *ret = (uint32_t)value;
    return 0;
}

int text_pid(Text a, int *ret)
{
    uint64_t value = 0;
    int r = text_u64(a, 10, &value);
    if (r < 0)
        return r;
    if (value == 0 || value > INT32_MAX)
        return -ERANGE;
    *ret = (int)value;
    return 0;
}

int text_kib(Text a, uint64_t *ret_bytes)
{
    Text number;
    Text unit;
    if (!text_word(&a, &number) || !text_word(&a, &unit) || !text_equal(unit, "kB") || text_trim(a).size > 0)
        return -EINVAL;
    uint64_t kib = 0;
    int r = text_u64(number, 10, &kib);
    if (r < 0)
        return r;
    if (__builtin_mul_overflow(kib, 1024, &kib))
        return -ERANGE;
    *ret_bytes = kib;
    return 0;
}

int text_decimal(Text a, double *ret)
{
    double value = 0;
    double scale = 1;
    bool point = false;
    bool digits = false;
    for (size_t i = 0; i < a.size; i++) {
        char c = a.data[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9')
            return -EINVAL;
        digits = true;
        value = value * 10 + (c - '0');
        if (point)
            scale *= 10;
    }
    if (!digits)
        return -EINVAL;
    *ret = value / scale;
    return 0;
}

/* The length of the valid UTF-8 sequence at the start of a; 0: there is none. Overlong forms and surrogates
 * are invalid. */
static size_t utf8_length(Text a, uint32_t *ret_point)
{
    unsigned char first = (unsigned char)a.data[0];
    size_t n = first < 0x80                    ? 1
               : first >= 0xC2 && first < 0xE0 ? 2
               : first >= 0xE0 && first < 0xF0 ? 3
               : first >= 0xF0 && first < 0xF5 ? 4
                                               : 0;
    if (n == 0 || n > a.size)
        return 0;
    uint32_t point = n == 1 ? first : first & (0xFFU >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        unsigned char c = (unsigned char)a.data[i];
        if ((c & 0xC0) != 0x80)
            return 0;
        point = point << 6 | (c & 0x3F);
    }
    if ((n == 3 && point < 0x800) || (n == 4 && (point < 0x10000 || point > 0x10FFFF)) ||
        (point >= 0xD800 && point <= 0xDFFF))
        return 0;
    *ret_point = point;
    return n;
}

/* C0, DEL and C1 steer terminals; U+2028/9 and the bidirectional controls reorder or break what a person
 * reads. */
static bool is_unsafe(uint32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x2028 || point == 0x2029 ||
           (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

int text_repair(Text a, Buffer *out)
{
    int r = 0;
    while (r >= 0 && a.size > 0) {
        uint32_t point = 0;
        size_t n = utf8_length(a, &point);
        r = n > 0 ? buffer_append(out, a.data, n) : buffer_append_text(out, "\xef\xbf\xbd");
        a = text_skip(a, MAX(n, (size_t)1));
    }
    return r;
}

int text_escape(Text a, Buffer *out)
{
    while (a.size > 0) {
        uint32_t point = 0;
        size_t n = utf8_length(a, &point);
        int r = 0;
        if (n == 0 || is_unsafe(point)) {
            n = MAX(n, (size_t)1);
            for (size_t i = 0; i < n && r >= 0; i++) {
                unsigned char c = (unsigned char)a.data[i];
                r = c == '\n'   ? buffer_append_text(out, "\\n")
                    : c == '\t' ? buffer_append_text(out, "\\t")
                                : buffer_printf(out, "\\x%02x", c);
            }
        } else if (point == '\\')
            r = buffer_append_text(out, "\\\\");
        else
            r = buffer_append(out, a.data, n);
        if (r < 0)
            return r;
        a = text_skip(a, n);
    }
    return 0;
}

int text_escape_prose(Text a, Buffer *out)
{
    size_t before = out->size;
    size_t backslashes = 0;
    for (size_t i = 0; i < a.size; i++)
        backslashes += a.data[i] == '\\';
    int r = text_escape(a, out);
    if (r < 0 || out->size - before != a.size + backslashes)
        return r;
    out->size = before;
    return buffer_append(out, a.data, a.size);
}

size_t text_unescape_octal(Text a, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < a.size; i++) {
        uint32_t byte = 0;
        if (a.data[i] == '\\' && a.size - i > 3 && text_u32((Text){a.data + i + 1, 3}, 8, &byte) == 0 &&
            byte <= 0xFF) {
            out[n++] = (char)byte;
            i += 3;
        } else
            out[n++] = a.data[i];
    }
    return n;
}

/* Of East Asian characters, for which the locale of C has no width. */
static bool is_wide(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xAC00, 0xD7A3},
        {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
        {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
    };
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

static int point_columns(uint32_t point)
{
    int width = wcwidth((wchar_t)point);
    return width >= 0 ? width : is_wide(point) ? 2 : 1;
}

/* The first character, or the first byte of what is none. */
static Text character_of(Text a, uint32_t *ret_point)
{
    *ret_point = 0;
    return (Text){a.data, a.size > 0 ? MAX(utf8_length(a, ret_point), (size_t)1) : 0};
}

static bool is_in(Text character, const char *set)
{
    return memmem(set, strlen(set), character.data, character.size);
}

bool text_piece(Text *rest, Text *ret_piece)
{
    static const char opening[] = "([{\"'“‘（【《「『";
    static const char closing[] = ")]}\"',.;:!?%”’…—、。，．：；！？）】》」』";
    if (rest->size == 0)
        return false;
    uint32_t point = 0;
    Text before = character_of(*rest, &point);
    bool wide = is_wide(point);
    Text left = text_skip(*rest, before.size);
    while (left.size > 0) {
        Text after = character_of(left, &point);
        bool next_wide = is_wide(point);
        if ((wide || next_wide) && !is_in(before, opening) && !is_in(after, closing))
            break;
        left = text_skip(left, after.size);
        before = after;
        wide = next_wide;
    }
    *ret_piece = (Text){rest->data, rest->size - left.size};
    *rest = left;
    return true;
}

size_t text_columns(Text a)
{
    size_t columns = 0;
    while (a.size > 0) {
        uint32_t point = 0;
        size_t n = utf8_length(a, &point);
        columns += n == 0 ? 1 : (size_t)point_columns(point);
        a = text_skip(a, MAX(n, (size_t)1));
    }
    return columns;
}

size_t text_character(Text text, size_t *ret_columns)
{
    size_t n = 1;
    while (n < text.size && ((unsigned char)text.data[n] & 0xC0) == 0x80)
        n++;
    *ret_columns = text_columns((Text){text.data, n});
    return n;
}

int text_shorten(Text text, size_t columns, const char *ellipsis, Buffer *out)
{
    size_t all = text_columns(text);
    if (all <= columns)
        return buffer_append(out, text.data, text.size);

    size_t gap = text_columns(text_of(ellipsis));
    size_t room = columns > gap ? columns - gap : 0;
    size_t head_room = room - room / 2;
    size_t head = 0;
    size_t head_columns = 0;
    size_t width = 0;
    while (head < text.size) {
        size_t n = text_character((Text){text.data + head, text.size - head}, &width);
        if (head_columns + width > head_room)
            break;
        head += n;
        head_columns += width;
    }
    /* Drop characters after the head until what is left fits, and the combining ones that lost their base. */
    size_t tail = head;
    size_t left = all - head_columns;
    while (tail < text.size) {
        size_t n = text_character((Text){text.data + tail, text.size - tail}, &width);
        if (left <= room - head_columns && width > 0)
            break;
        left -= width;
        tail += n;
    }
    int r = buffer_append(out, text.data, head);
    if (r >= 0)
        r = buffer_append_text(out, columns >= gap ? ellipsis : "");
    return r < 0 ? r : buffer_append(out, text.data + tail, text.size - tail);
}
