/* SPDX-License-Identifier: Apache-2.0 */
#include "show-clean.h"

int json_cleaning(FILE *out, bool indented, const Cleaning *cleaning)
{
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.clean/1"));
    json_writer_field(&writer, "dry_run", json_boolean(cleaning->dry_run));
    json_writer_list(&writer, "removed");
    for (size_t i = 0; i < cleaning->removed.n; i++)
        json_writer_item(&writer, json_raw(cleaning->removed.items[i].segment->name));
    json_writer_list_end(&writer);
    json_writer_list(&writer, "kept");
    for (size_t i = 0; i < cleaning->kept.n; i++)
        json_writer_item(&writer,
                         json_pack("{s:o, s:o}", "name", json_raw(cleaning->kept.items[i].segment->name),
                                   "why", json_prose(cleaning->kept.items[i].why)));
    json_writer_list_end(&writer);
    json_writer_field(&writer, "freed", json_size(cleaning->freed_bytes));
    return json_writer_close(&writer);
}
