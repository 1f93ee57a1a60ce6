/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "plan-parse.h"
#include "plan-text.h"
#include "units.h"

/* The values of torch.NAME.itemsize, with the short names. A type of less than a byte takes a whole one, or
 * packs several values into it, which the tensor's shape counts as one. */
static const struct {
    const char *name;
    unsigned char bytes;
} dtypes[] = {
    {"bool", 1},
    {"uint8", 1},
    {"int8", 1},
    {"uint16", 2},
    {"int16", 2},
    {"short", 2},
    {"uint32", 4},
    {"int32", 4},
    {"int", 4},
    {"uint64", 8},
    {"int64", 8},
    {"long", 8},
    {"float16", 2},
    {"half", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float", 4},
    {"float64", 8},
    {"double", 8},
    {"complex32", 4},
    {"chalf", 4},
    {"complex64", 8},
    {"cfloat", 8},
    {"complex128", 16},
    {"cdouble", 16},
    {"float8_e4m3fn", 1},
    {"float8_e4m3fnuz", 1},
    {"float8_e5m2", 1},
    {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1},
    {"float4_e2m1fn_x2", 1},
    {"qint8", 1},
    {"quint8", 1},
    {"qint32", 4},
    {"quint4x2", 1},
    {"quint2x4", 1},
    {"bit", 1},
    {"bits1x8", 1},
    {"bits2x4", 1},
    {"bits4x2", 1},
    {"bits8", 1},
    {"bits16", 2},
    {"int1", 1},
    {"int2", 1},
    {"int3", 1},
    {"int4", 1},
    {"int5", 1},
    {"int6", 1},
    {"int7", 1},
    {"uint1", 1},
    {"uint2", 1},
    {"uint3", 1},
    {"uint4", 1},
    {"uint5", 1},
    {"uint6", 1},
    {"uint7", 1},
};

/* Appends what is wrong, and is the error. */
#define REFUSE(r, error, ...) ((void)buffer_printf((error), __VA_ARGS__), (r))

/* What the user wrote, to be quoted. Lives in `quoted`. */
static const char *quote(Text text, Buffer *quoted)
{
    buffer_clear(quoted);
    (void)text_escape(text, quoted);
    return buffer_text(quoted);
}

static int dtype_find(Text name, uint64_t *ret_bytes)
{
    if (text_starts(name, "torch."))
        name = text_skip(name, strlen("torch."));
    for (size_t i = 0; i < ARRAY_SIZE(dtypes); i++)
        if (text_equal(name, dtypes[i].name)) {
            *ret_bytes = dtypes[i].bytes;
            return 0;
        }
    return -EINVAL;
}

/* "3,224,224" of "float32[3,224,224]", which `whole` is. */
static int dimensions_multiply(Text inside, Text whole, uint64_t *bytes, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    size_t n = 0;
    if (text_trim(inside).size == 0)
        return 0; /* "int64[]": a scalar */
    if (inside.data[inside.size - 1] == ',')
        return REFUSE(-EINVAL, error, PLAN_BAD_SHAPE_COMMA, quote(whole, &quoted));
    for (Text part; text_until(&inside, ',', &part);) {
        uint64_t dimension = 0;
        int r = text_u64(text_trim(part), 10, &dimension);
        if (r == -EINVAL)
            return REFUSE(r, error, PLAN_BAD_SHAPE, quote(whole, &quoted));
        if (r == 0 && dimension == 0)
            return REFUSE(-EINVAL, error, PLAN_BAD_SHAPE_ZERO, quote(whole, &quoted));
        if (++n > PLAN_DIMENSIONS_MOST)
            return REFUSE(-ERANGE, error, PLAN_BAD_SHAPE_LONG, quote(whole, &quoted));
        if (r < 0 || __builtin_mul_overflow(*bytes, dimension, bytes) || *bytes > INT64_MAX)
            return REFUSE(-ERANGE, error, PLAN_BAD_SAMPLE_LARGE, quote(whole, &quoted));
    }
    return 0;
}

int plan_sample_parse(Text text, uint64_t *ret_bytes, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    text = text_trim(text);
    const char *open = memchr(text.data, '[', text.size);
    Text name = {text.data, open ? (size_t)(open - text.data) : text.size};
    Text shape = text_skip(text, name.size);
    name = text_trim(name);
    uint64_t bytes = 0;
    if (name.size == 0)
        return REFUSE(-EINVAL, error, PLAN_BAD_SAMPLE_DTYPE, quote(text, &quoted));
    if (dtype_find(name, &bytes) < 0)
        return REFUSE(-EINVAL, error, PLAN_BAD_DTYPE, quote(name, &quoted));
    if (shape.size > 0) {
        if (shape.data[shape.size - 1] != ']' || shape.size < 2)
            return REFUSE(-EINVAL, error, PLAN_BAD_SAMPLE_END, quote(text, &quoted));
        int r = dimensions_multiply((Text){shape.data + 1, shape.size - 2}, text, &bytes, error);
        if (r < 0)
            return r;
    }
    *ret_bytes = bytes;
    return 0;
}

int plan_loader_add(PlanLoader *loader, Text sample, Arena *arena, Buffer *error)
{
    uint64_t bytes = 0;
    int r = plan_sample_parse(sample, &bytes, error);
    if (r < 0)
        return r;
    if (loader->n_fields == PLAN_FIELDS_MOST)
        return REFUSE(-ERANGE, error, PLAN_BAD_FIELDS, PLAN_FIELDS_MOST);
    uint64_t *slot = ARENA_PUSH(arena, loader->field_bytes, loader->n_fields, loader->fields_capacity);
    if (!slot)
        return -ENOMEM;
    *slot = bytes;
    return 0;
}

int plan_count_parse(Text text, uint64_t most, uint64_t *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    uint64_t count = 0;
    Text trimmed = text_trim(text);
    if (text_u64(trimmed, 10, &count) == 0 && count >= 1 && count <= most) {
        *ret = count;
        return 0;
    }
    return REFUSE(-EINVAL, error, PLAN_BAD_COUNT, (unsigned long long)most, quote(trimmed, &quoted));
}

int plan_size_parse(Text text, uint64_t *ret_bytes, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    uint64_t bytes = 0;
    int r = size_parse(text, &bytes);
    if (r == -ERANGE || (r == 0 && bytes > INT64_MAX))
        return REFUSE(-ERANGE, error, PLAN_BAD_SIZE_LARGE, quote(text, &quoted));
    if (r < 0)
        return REFUSE(r, error, PLAN_BAD_SIZE, quote(text, &quoted));
    if (bytes == 0)
        return REFUSE(-EINVAL, error, PLAN_BAD_SIZE_ZERO, quote(text, &quoted));
    *ret_bytes = bytes;
    return 0;
}

int plan_margin_parse(Text text, double *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    double margin = 0;
    if (text_decimal(text_trim(text), &margin) < 0 || !(margin >= 1 && margin <= PLAN_MARGIN_MOST))
        return REFUSE(-EINVAL, error, PLAN_BAD_MARGIN, quote(text, &quoted));
    *ret = margin;
    return 0;
}

int plan_range_parse(Text text, uint64_t *ret_first, uint64_t *ret_last, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    Text rest = text_trim(text);
    Text after = {0};
    uint64_t first = 0;
    uint64_t last = 0;
    bool range = text_after(rest, "..", &after);
    Text before = range ? (Text){rest.data, (size_t)(after.data - rest.data) - 2} : rest;
    int r = plan_count_parse(before, PLAN_COUNT_MOST, &first, error);
    if (r >= 0 && range)
        r = plan_count_parse(after, PLAN_COUNT_MOST, &last, error);
    if (r < 0)
        return r;
    last = range ? last : first;
    if (last < first)
        return REFUSE(-EINVAL, error, PLAN_BAD_RANGE_ORDER, quote(rest, &quoted));
    if (last - first >= PLAN_ROWS_MOST)
        return REFUSE(-ERANGE, error, PLAN_BAD_RANGE_LONG, quote(rest, &quoted));
    *ret_first = first;
    *ret_last = last;
    return 0;
}

static int collate_parse(Text value, bool *ret_list, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    bool list = text_equal(value, "list");
    if (!list && !text_equal(value, "stack"))
        return REFUSE(-EINVAL, error, PLAN_BAD_COLLATE, quote(value, &quoted));
    *ret_list = list;
    return 0;
}

static int setting_parse(Text key, Text value, Arena *arena, PlanLoader *loader, Buffer *error)
{
    if (text_equal(key, "sample"))
        return plan_loader_add(loader, value, arena, error);
    _cleanup_buffer_ Buffer why = {0};
    _cleanup_buffer_ Buffer quoted = {0};
    int r = text_equal(key, "batch")      ? plan_count_parse(value, PLAN_BATCH_MOST, &loader->batch, &why)
            : text_equal(key, "workers")  ? plan_count_parse(value, PLAN_COUNT_MOST, &loader->workers, &why)
            : text_equal(key, "prefetch") ? plan_count_parse(value, PLAN_COUNT_MOST, &loader->prefetch, &why)
            : text_equal(key, "held")     ? plan_count_parse(value, PLAN_COUNT_MOST, &loader->held, &why)
            : text_equal(key, "bytes")    ? plan_size_parse(value, &loader->batch_bytes, &why)
            : text_equal(key, "collate")  ? collate_parse(value, &loader->list, &why)
                                          : -ENOENT;
    if (r == -ENOENT)
        return REFUSE(-EINVAL, error, PLAN_BAD_SETTING_NAME, quote(key, &quoted));
    return r < 0 ? REFUSE(r, error, "%s %s", quote(key, &quoted), buffer_text(&why)) : r;
}

int plan_loader_parse(Text text, const PlanLoader *usual, Arena *arena, PlanLoader *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    /* Its own samples, or bytes, replace the usual ones of either sort. */
    PlanLoader loader = *usual;
    loader.field_bytes = NULL;
    loader.n_fields = loader.fields_capacity = 0;
    loader.batch_bytes = 0;
    for (Text rest = text, part; text_until(&rest, ';', &part);) {
        part = text_trim(part);
        Text value = {0};
        if (part.size == 0)
            continue;
        if (!text_after(part, "=", &value))
            return REFUSE(-EINVAL, error, PLAN_BAD_SETTING, quote(part, &quoted));
        Text key = text_trim((Text){part.data, (size_t)(value.data - part.data) - 1});
        int r = setting_parse(key, text_trim(value), arena, &loader, error);
        if (r < 0)
            return r;
    }
    if (loader.n_fields > 0 && loader.batch_bytes > 0)
        return REFUSE(-EINVAL, error, PLAN_BAD_BOTH);
    if (loader.n_fields == 0 && loader.batch_bytes == 0) {
        loader.field_bytes = usual->field_bytes;
        loader.n_fields = usual->n_fields;
        loader.fields_capacity = usual->n_fields; /* a list that is not its own is never added to */
        loader.batch_bytes = usual->batch_bytes;
    }
    *ret = loader;
    return 0;
}
