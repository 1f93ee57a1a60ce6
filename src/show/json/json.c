/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

static void line_break(JsonWriter *writer)
{
    if (writer->indented)
        fprintf(writer->out, "\n%*s", (int)writer->depth * 2, "");
}

void json_writer_open(JsonWriter *writer, FILE *out, bool indented)
{
    *writer = (JsonWriter){.out = out, .indented = indented, .depth = 1, .first = true};
    fputc('{', out);
}

/* jansson starts every value at the left margin: what it writes after a newline is indented to the current
 * depth. Its strings hold no newline. */
static int value_bytes(const char *bytes, size_t n, void *context)
{
    JsonWriter *writer = context;
    if (!writer->indented) {
        fwrite(bytes, 1, n, writer->out);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        fputc(bytes[i], writer->out);
        if (bytes[i] == '\n')
            fprintf(writer->out, "%*s", (int)writer->depth * 2, "");
    }
    return 0;
}

static void item_begin(JsonWriter *writer)
{
    if (!writer->first)
        fputc(',', writer->out);
    writer->first = false;
    line_break(writer);
}

static void value_write(JsonWriter *writer, json_t *value)
{
    size_t flags = (writer->indented ? JSON_INDENT(2) : JSON_COMPACT) | JSON_REAL_PRECISION(6);
    if (!value || json_dump_callback(value, value_bytes, writer, flags | JSON_ENCODE_ANY) < 0)
        writer->error = -ENOMEM;
    json_decref(value);
}

static void name_write(JsonWriter *writer, const char *name)
{
    item_begin(writer);
    fprintf(writer->out, writer->indented ? "\"%s\": " : "\"%s\":", name);
}

void json_writer_field(JsonWriter *writer, const char *name, json_t *value)
{
    name_write(writer, name);
    value_write(writer, value);
}

void json_writer_list(JsonWriter *writer, const char *name)
{
    name_write(writer, name);
    fputc('[', writer->out);
    writer->depth++;
    writer->first = true;
}

void json_writer_item(JsonWriter *writer, json_t *value)
{
    item_begin(writer);
    value_write(writer, value);
}

void json_writer_list_end(JsonWriter *writer)
{
    writer->depth--;
    if (!writer->first)
        line_break(writer);
    fputc(']', writer->out);
    writer->first = false;
}

int json_writer_close(JsonWriter *writer)
{
    writer->depth--;
    line_break(writer);
    fputs("}\n", writer->out);
    return writer->error;
}

json_t *json_size(uint64_t bytes)
{
    return bytes == U64_UNKNOWN ? json_null() : json_integer((json_int_t)MIN(bytes, (uint64_t)INT64_MAX));
}

json_t *json_raw(Text text)
{
    _cleanup_buffer_ Buffer safe = {0};
    if (text_escape(text, &safe) < 0)
        return NULL;
    return json_stringn(buffer_text(&safe), safe.size);
}

json_t *json_prose(const char *text)
{
    if (!text)
        return json_null();
    json_t *value = json_string(text); /* NULL if it is not UTF-8 */
    return value ? value : json_raw(text_of(text));
}

json_t *json_proses(const char *const *texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_prose(texts[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}
