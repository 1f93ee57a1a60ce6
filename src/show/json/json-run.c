/* SPDX-License-Identifier: Apache-2.0 */
#include "idle.h"
#include "show-explain.h"
#include "show-fixes.h"
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

json_t *json_values(const AttemptValue *values, size_t n)
{
    json_t *object = json_object();
    _cleanup_buffer_ Buffer name = {0};
    for (size_t i = 0; i < n; i++) {
        buffer_clear(&name);
        if (text_escape(text_of(values[i].name), &name) < 0 ||
            json_object_set_new(object, buffer_text(&name), json_raw(text_of(values[i].value))) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* The Python stack: one string per line, outermost last. */
static json_t *json_stack(const char *stack)
{
    if (!stack)
        return json_null();
    json_t *list = json_array();
    TEXT_FOR_EACH_LINE (line, text_of(stack))
        if (json_array_append_new(list, json_raw(line)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* The documented fields of a cause, and what else is known about the death. */
static json_t *json_judged(const Diagnosis *judged)
{
    json_t *cause = json_cause(&judged->cause);
    if (cause && json_object_set_new(cause, "detail", json_prose(judged->detail)) >= 0 &&
        json_object_set_new(cause, "stack", json_stack(judged->stack)) >= 0)
        return cause;
    json_decref(cause);
    return NULL;
}

static json_t *json_attempt(const RunAttempt *attempt)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:f}", "command", json_command(attempt->command), "values",
                     json_values(attempt->values, attempt->n_values), "exit", json_exit(&attempt->result),
                     "cause", json_judged(&attempt->judged), "seconds", attempt->result.seconds);
}

static json_t *json_unguarded(const Coverage *coverage)
{
    json_t *list = json_array();
    for (size_t i = 0; i < coverage->n_unguarded; i++) {
        const Unguarded *unguarded = &coverage->unguarded[i];
        json_t *item = json_pack("{s:i, s:o, s:s, s:i, s:s}", "pid", unguarded->pid, "name",
                                 json_raw(text_of(unguarded->comm)), "role", role_name(unguarded->role),
                                 "uid", (int)unguarded->uid, "why", absence_name(unguarded->why));
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *json_refusals(const GuardFigures *guard)
{
    json_t *list = json_array();
    for (size_t i = 0; i < guard->n_refusals; i++) {
        const Refusal *refusal = &guard->refusals[i];
        json_t *item = json_pack("{s:i, s:o, s:o, s:o, s:b}", "pid", refusal->pid, "requests",
                                 json_size(refusal->requests), "unheard", json_size(refusal->unheard),
                                 "bytes_most", json_size(refusal->most_bytes), "told", refusal->told);
        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *json_keeper(const Keeper *keeper)
{
    return keeper->pid == 0 ? json_null()
                            : json_pack("{s:i, s:s, s:o}", "pid", keeper->pid, "role",
                                        role_name(keeper->role), "bytes_most", json_size(keeper->bytes));
}

static const char *budget_basis_name(BudgetBasis basis)
{
    static const char *const names[] = {[BUDGET_OF_NOTHING] = NULL,
                                        [BUDGET_OF_USER] = "option",
                                        [BUDGET_OF_MACHINE] = "machine",
                                        [BUDGET_OF_GROUP] = "cgroup",
                                        [BUDGET_OF_SLURM] = "slurm"};
    return names[basis];
}

static json_t *json_guard(const RunResult *result, const Evidence *evidence)
{
    const GuardFigures *guard = &result->guard;
    return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o, "
                     "s:o, s:o, s:o, s:s?, s:o, s:b, s:o, s:s?}",
                     "active", result->guarded, "segments_created", json_size(guard->segments_created),
                     "segments_reused", json_size(guard->segments_reused), "bytes_backed",
                     json_size(guard->bytes_backed), "small_backed", json_size(guard->small_backed),
                     "bytes_peak", json_size(guard->bytes_peak), "waits", json_size(guard->waits),
                     "waited_seconds", guard->waited_seconds, "refused", json_size(guard->refused),
                     "names_made", json_size(guard->names_made), "names_served",
                     json_size(guard->names_served), "pinned_bytes", json_size(guard->pinned_bytes),
                     "fallbacks", json_size(guard->fallbacks), "refusals", json_refusals(guard),
                     "queued_seconds", guard->queued_seconds, "rescues", json_size(guard->rescues),
                     "enough_bytes", json_size(guard->wanted_bytes == 0 ? U64_UNKNOWN : guard->wanted_bytes),
                     "keeper", json_keeper(&result->keeper), "batches", json_size(guard->batches),
                     "processes", json_size(evidence->coverage.guarded), "idle",
                     result->guarded ? idle_name(idle_judge(evidence)) : NULL, "unguarded",
                     json_unguarded(&evidence->coverage), "joined", result->joined, "budget_bytes",
                     json_size(result->guarded ? guard->budget_bytes : U64_UNKNOWN), "budget_from",
                     result->guarded ? budget_basis_name(result->budget_basis) : NULL);
}

static json_t *json_lane(const RunResult *result)
{
    const LaneFigures *lane = &result->guard.lane;
    const char *why = result->guarded ? lane->why : "no-guard";
    return json_pack("{s:b, s:s?, s:o, s:o, s:o, s:o}", "active", why == NULL, "why", why, "batches",
                     json_size(lane->batches), "by_value_bytes", json_size(lane->by_value_bytes),
                     "in_segments_bytes", json_size(lane->in_segments_bytes), "declined",
                     json_size(lane->declined));
}

static json_t *json_freeze(const RunResult *result)
{
    const FreezeFigures *freeze = &result->guard.freeze;
    const char *why = result->guarded ? freeze->why : "no-guard";
    return json_pack("{s:b, s:s?, s:o, s:o, s:f, s:o}", "active", freeze->objects > 0, "why", why, "objects",
                     json_size(freeze->objects), "bytes", json_size(freeze->bytes), "seconds",
                     freeze->seconds, "left_bytes", json_size(freeze->left_bytes));
}

/* null for what was not measured. */
json_t *json_peaks(const Peaks *peaks)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "shm", json_size(peaks->shm_bytes), "rss",
                     json_size(peaks->rss_bytes), "fds", json_size(peaks->fds), "processes",
                     json_size(peaks->processes));
}

static json_t *json_stray_work(const StrayWork *work)
{
    if (work->n == 0)
        return json_null();
    return json_pack("{s:i, s:i, s:o, s:f}", "processes", (int)work->n, "pid", work->pid, "command",
                     json_raw(text_of(work->command)), "cpu_seconds", work->cpu_seconds);
}

int json_run(FILE *out, bool indented, const RunReport *report)
{
    const RunAttempt *last = report_last(report);
    JsonWriter writer;
    json_writer_open(&writer, out, indented);
    json_writer_field(&writer, "schema", json_string("shmguard.run/1"));
    json_writer_field(&writer, "exit", json_exit(&last->result));
    json_writer_field(&writer, "exit_code", json_integer(report_exit_code(report)));
    json_writer_field(&writer, "cause", json_judged(&last->judged));
    json_writer_field(&writer, "fixes", json_fixes(&last->judged.fixes));
    json_writer_list(&writer, "attempts");
    for (size_t i = 0; i < report->n_attempts; i++)
        json_writer_item(&writer, json_attempt(&report->attempts[i]));
    json_writer_list_end(&writer);
    json_writer_list(&writer, "processes");
    for (size_t i = 0; i < last->evidence.n_ended; i++)
        json_writer_item(&writer, json_ended(&last->evidence.ended[i]));
    json_writer_list_end(&writer);
    json_writer_field(&writer, "peaks", json_peaks(&report->peaks));
    json_writer_field(&writer, "guard", json_guard(&last->result, &last->evidence));
    json_writer_field(&writer, "lane", json_lane(&last->result));
    json_writer_field(&writer, "freeze", json_freeze(&last->result));
    json_writer_field(&writer, "strays_ended", json_integer(last->result.strays));
    json_writer_field(&writer, "ended_at_work", json_stray_work(&last->result.work));
    return json_writer_close(&writer);
}
