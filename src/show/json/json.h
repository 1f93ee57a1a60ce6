/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON for scripts. Values are jansson's; lists are written item by item, so that the size of the output does
 * not cost memory. All strings are valid UTF-8.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "text.h"

typedef struct JsonWriter {
    FILE *out;
    bool indented;
    unsigned depth;
    bool first; /* the open object or list is still empty */
    int error;  /* 0 or -ENOMEM */
} JsonWriter;

/* One object: open, fields and lists, close. Values are stolen; a NULL one (no memory) is remembered. */
void json_writer_open(JsonWriter *writer, FILE *out, bool indented);
void json_writer_field(JsonWriter *writer, const char *name, json_t *value);
void json_writer_list(JsonWriter *writer, const char *name);
void json_writer_item(JsonWriter *writer, json_t *value);
void json_writer_list_end(JsonWriter *writer);
int json_writer_close(JsonWriter *writer); /* 0 or -ENOMEM. Errors of the stream are left to ferror. */

json_t *json_size(uint64_t bytes);    /* null for U64_UNKNOWN; at most INT64_MAX, which means no limit */
json_t *json_raw(Text text);          /* a stranger's bytes: escaped */
json_t *json_prose(const char *text); /* our own text, escaped only if it is not UTF-8; null for NULL */
json_t *json_proses(const char *const *texts, size_t n);
