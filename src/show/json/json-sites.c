/* SPDX-License-Identifier: Apache-2.0 */
#include "show-sites.h"

json_t *json_site(const LeakSite *site)
{
    json_t *number = site->line > 0 ? json_integer(site->line) : json_null();
    json_t *file = site->file[0] ? json_prose(site->file) : json_null();
    return json_pack("{s:o, s:o, s:o, s:s, s:f, s:f, s:f, s:i, s:o, s:i, s:f, s:o}", "file", file, "line",
                     number, "function", json_prose(site->what), "kind", site_kind_name(site->kind),
                     "bytes_per_minute", site->bytes_per_minute, "count_per_minute", site->count_per_minute,
                     "share", site->share, "pid", site->pid, "worker",
                     site->worker < 0 ? json_null() : json_integer(site->worker), "stage", (int)site->stage,
                     "seconds", site->seconds, "words", json_prose(site->words));
}

static void sites_list(JsonWriter *writer, const SiteView *view, const char *name, bool types)
{
    json_writer_list(writer, name);
    for (size_t i = 0; i < view->n; i++)
        if ((view->items[i].kind == SITE_TYPE) == types)
            json_writer_item(writer, json_site(&view->items[i]));
    json_writer_list_end(writer);
}

void json_sites(JsonWriter *writer, const SiteView *view)
{
    if (!view->sought)
        return;
    sites_list(writer, view, "sites", false);
    sites_list(writer, view, "types", true);
    json_writer_field(writer, "explained", json_real(view->explained));
    json_writer_list(writer, "site_notes");
    for (size_t i = 0; i < view->n_notes; i++)
        json_writer_item(writer, json_prose(view->notes[i]));
    json_writer_list_end(writer);
}
