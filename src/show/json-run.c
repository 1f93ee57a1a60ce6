#include "show-explain.h"
#include "show-run.h"

static json_t *json_exit(const RunResult *result)
{
    return json_pack("{s:i, s:o}", "code", result->code, "signal",
                     result->signal ? json_integer(result->signal) : json_null());
}

static json_t *json_command(char *const *command)
{
    json_t *list = json_array();
    for (; *command; command++)
        if (json_array_append_new(list, json_raw(text_of(*command))) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *json_guard(const RunResult *result)
{
    const GuardFigures *guard = &result->guard;
    return json_pack(
        "{s:b, s:o, s:o, s:o, s:o, s:o, s:i, s:f, s:i, s:o, s:o, s:i, s:o}", /* the contract's order */
        "active", result->guarded, "segments_created", json_size(guard->segments_created), "segments_reused",
        json_size(guard->segments_reused), "bytes_backed", json_size(guard->bytes_backed), "small_backed",
        json_size(guard->small_backed), "bytes_peak", json_size(guard->bytes_peak), "waits", 0,
        "waited_seconds", 0.0, "refused", 0, "names_made", json_size(guard->names_made), "names_served",
        json_size(guard->names_served), "pinned_bytes", 0, "fallbacks", json_size(guard->fallbacks));
}

/* What is not measured is null. */
static json_t *json_peaks(const RunResult *result)
{
    return json_pack("{s:o, s:n, s:n, s:n}", "shm",
                     result->guarded ? json_size(result->guard.bytes_peak) : json_null(), "rss", "fds",
                     "processes");
}

static json_t *json_values(const RunAttempt *attempt)
{
    json_t *object = json_object();
    for (size_t i = 0; i < attempt->n_values; i++)
        if (json_object_set_new(object, attempt->values[i].name,
                                json_raw(text_of(attempt->values[i].value))) < 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}

static json_t *json_attempt(const RunAttempt *attempt)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:f}", "command", json_command(attempt->command), "values",
                     json_values(attempt), "exit", json_exit(&attempt->result), "cause",
                     json_cause(&attempt->cause), "seconds", attempt->result.seconds);
}

int json_run(FILE *out, bool indented, const RunReport *report)
{
    const RunAttempt *last = report_last(report);
    const RunResult *result = &last->result;
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.run/1"));
    json_writer_field(&writer, "exit", json_exit(result));
    json_writer_field(&writer, "cause", json_cause(&last->cause));
    json_writer_list(&writer, "attempts");
    for (size_t i = 0; i < report->n_attempts; i++)
        json_writer_item(&writer, json_attempt(&report->attempts[i]));
    json_writer_list_end(&writer);
    json_writer_field(&writer, "peaks", json_peaks(result));
    json_writer_field(&writer, "guard", json_guard(result));
    json_writer_field(&writer, "strays_ended", json_integer(result->strays));
    return json_writer_close(&writer);
}
