/* SPDX-License-Identifier: Apache-2.0 */
#include "show-explain.h"
#include "show-fixes.h"

json_t *json_cause(const Cause *cause)
{
    return json_pack("{s:s, s:f, s:o, s:o, s:o}", "id", cause_name(cause->id), "confidence",
                     cause->confidence, "summary", json_prose(cause->summary), "evidence",
                     json_proses(cause->evidence, cause->n_evidence), "pid",
                     cause->pid > 0 ? json_integer(cause->pid) : json_null());
}

int json_explanation(FILE *out, bool indented, const Diagnosis *explanation)
{
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.explain/1"));
    json_writer_field(&writer, "cause", json_cause(&explanation->cause));
    json_writer_field(&writer, "detail", json_prose(explanation->detail));
    json_writer_field(&writer, "matched", json_proses(explanation->matched, explanation->n_matched));
    json_writer_field(&writer, "fixes", json_fixes(&explanation->fixes));
    json_writer_field(&writer, "notes", json_proses(explanation->notes, explanation->n_notes));
    return json_writer_close(&writer);
}
