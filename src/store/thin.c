/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "history.h"
#include "thin.h"

/* A group of `group` moments is thinned when all of it is at least `age` moments old. Each group consists of
 * whole groups of the previous level. */
static const struct {
    sqlite3_int64 age;
    sqlite3_int64 group;
} levels[THIN_LEVELS] = {{3600, 20}, {36000, 120}, {172800, 1200}};

/* The figures of a process that are read in turns. */
static const ProcessMetric turn_metrics[] = {PROCESS_PSS,      PROCESS_USS,  PROCESS_SHM,
                                             PROCESS_SEGMENTS, PROCESS_MAPS, PROCESS_FDS};
enum { TURN_METRICS = ARRAY_SIZE(turn_metrics) };

/* The figures nearest to the two kept moments, of one process or, with process 0, of the job by kind. */
typedef struct Carried {
    sqlite3_int64 process;
    uint64_t values[2][MAX((int)TURN_METRICS, (int)SEGMENT_KINDS)];
} Carried;

typedef struct ThinGroup {
    sqlite3_int64 first;
    sqlite3_int64 last;
    sqlite3_int64 kept[2]; /* the same twice when there is only one */
} ThinGroup;

static int statements_prepare(Thin *thin, Buffer *sql)
{
    int r = sqlite_prepare(thin->db,
                           "SELECT id, ifnull(shm_used, 0) + (SELECT total(anon) FROM sample WHERE "
                           "moment = moment.id) FROM moment WHERE id BETWEEN ? AND ? ORDER BY id",
                           &thin->weights);
    buffer_clear(sql);
    if (r >= 0)
        r = buffer_append_text(sql, "SELECT moment, process");
    for (size_t i = 0; r >= 0 && i < TURN_METRICS; i++)
        r = buffer_printf(sql, ", %s", process_metric_name(turn_metrics[i]));
    if (r >= 0)
        r = buffer_append_text(sql, " FROM sample WHERE moment BETWEEN ? AND ? ORDER BY moment, process");
    if (r >= 0)
        r = sqlite_prepare(thin->db, buffer_text(sql), &thin->turns);

    buffer_clear(sql);
    if (r >= 0)
        r = buffer_append_text(sql, "UPDATE sample SET ");
    for (size_t i = 0; r >= 0 && i < TURN_METRICS; i++) {
        const char *name = process_metric_name(turn_metrics[i]);
        r = buffer_printf(sql, "%s%s = ifnull(%s, ?%zu)", i == 0 ? "" : ", ", name, name, i + 3);
    }
    if (r >= 0)
        r = buffer_append_text(sql, " WHERE moment = ?1 AND process = ?2");
    if (r >= 0)
        r = sqlite_prepare(thin->db, buffer_text(sql), &thin->turns_set);

    buffer_clear(sql);
    if (r >= 0)
        r = buffer_append_text(sql, "SELECT id, 0");
    for (unsigned i = 0; r >= 0 && i < SEGMENT_KINDS; i++)
        r = buffer_printf(sql, ", %s", job_metric_name(JOB_KIND_BYTES + i));
    if (r >= 0)
        r = buffer_append_text(sql, " FROM moment WHERE id BETWEEN ? AND ? ORDER BY id");
    if (r >= 0)
        r = sqlite_prepare(thin->db, buffer_text(sql), &thin->job_turns);

    buffer_clear(sql);
    if (r >= 0)
        r = buffer_append_text(sql, "UPDATE moment SET ");
    for (unsigned i = 0; r >= 0 && i < SEGMENT_KINDS; i++) {
        const char *name = job_metric_name(JOB_KIND_BYTES + i);
        r = buffer_printf(sql, "%s%s = ifnull(%s, ?%u)", i == 0 ? "" : ", ", name, name, i + 3);
    }
    if (r >= 0)
        r = buffer_append_text(sql, " WHERE id = ?1");
    if (r >= 0)
        r = sqlite_prepare(thin->db, buffer_text(sql), &thin->job_turns_set);
    return r;
}

static int deletes_prepare(Thin *thin)
{
    int r =
        sqlite_prepare(thin->db, "DELETE FROM sample WHERE moment BETWEEN ? AND ? AND moment NOT IN (?, ?)",
                       &thin->delete_samples);
    if (r >= 0)
        r = sqlite_prepare(thin->db, "DELETE FROM moment WHERE id BETWEEN ? AND ? AND id NOT IN (?, ?)",
                           &thin->delete_moments);
    /* Processes that started and ended between two kept moments. */
    if (r >= 0)
        r = sqlite_prepare(thin->db,
                           "DELETE FROM process WHERE last_moment BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 "
                           "FROM moment WHERE moment.id BETWEEN first_moment AND last_moment)",
                           &thin->delete_processes);
    return r;
}

int thin_open(sqlite3 *db, Thin *ret)
{
    _cleanup_buffer_ Buffer sql = {0};
    Thin thin = {.db = db};
    for (size_t i = 0; i < THIN_LEVELS; i++)
        thin.next[i] = 1;
    int r = statements_prepare(&thin, &sql);
    if (r >= 0)
        r = deletes_prepare(&thin);
    if (r < 0) {
        thin_close(&thin);
        return r;
    }
    *ret = thin;
    return 0;
}

void thin_close(Thin *thin)
{
    statement_finish(&thin->weights);
    statement_finish(&thin->turns);
    statement_finish(&thin->turns_set);
    statement_finish(&thin->job_turns);
    statement_finish(&thin->job_turns_set);
    statement_finish(&thin->delete_samples);
    statement_finish(&thin->delete_moments);
    statement_finish(&thin->delete_processes);
    free(TAKE_PTR(thin->carried));
}

/* --- One group ---------------------------------------------------------------------------------------- */

static int range_run(sqlite3_stmt *statement, const ThinGroup *group)
{
    (void)sqlite3_bind_int64(statement, 1, group->first);
    (void)sqlite3_bind_int64(statement, 2, group->last);
    (void)sqlite3_bind_int64(statement, 3, group->kept[0]); /* if there is one */
    (void)sqlite3_bind_int64(statement, 4, group->kept[1]);
    return statement_run(statement);
}

/* The first of the lowest and the last of the highest. False: there are none. */
static int kept_choose(Thin *thin, ThinGroup *group, bool *ret_any)
{
    double low = 0;
    double high = 0;
    bool any = false;
    int answer = SQLITE_DONE;
    (void)sqlite3_bind_int64(thin->weights, 1, group->first);
    (void)sqlite3_bind_int64(thin->weights, 2, group->last);
    while ((answer = sqlite3_step(thin->weights)) == SQLITE_ROW) {
        sqlite3_int64 moment = sqlite3_column_int64(thin->weights, 0);
        double weight = sqlite3_column_double(thin->weights, 1);
        if (!any || weight < low) {
            low = weight;
            group->kept[0] = moment;
        }
        if (!any || weight >= high) {
            high = weight;
            group->kept[1] = moment;
        }
        any = true;
    }
    (void)sqlite3_reset(thin->weights);
    if (group->kept[0] > group->kept[1]) {
        sqlite3_int64 later = group->kept[0];
        group->kept[0] = group->kept[1];
        group->kept[1] = later;
    }
    *ret_any = any;
    return sqlite_errno(thin->db, answer);
}

/* In rising order of process. */
static Carried *carried_find(Thin *thin, sqlite3_int64 process)
{
    size_t low = LOWER_BOUND(i, thin->n_carried, thin->carried[i].process < process);
    if (low < thin->n_carried && thin->carried[low].process == process)
        return &thin->carried[low];
    if (thin->n_carried == thin->carried_capacity) {
        size_t wanted = MAX(thin->carried_capacity * 2, (size_t)64);
        Carried *larger = reallocarray(thin->carried, wanted, sizeof *larger);
        if (!larger)
            return NULL;
        thin->carried = larger;
        thin->carried_capacity = wanted;
    }
    memmove(thin->carried + low + 1, thin->carried + low, (thin->n_carried - low) * sizeof *thin->carried);
    thin->n_carried++;
    thin->carried[low].process = process;
    memset(thin->carried[low].values, 0xff, sizeof thin->carried[low].values); /* all unknown */
    return &thin->carried[low];
}

/* Moments before the middle between the two belong to the first one, the others to the second. Up to each
 * kept moment the last figure is the nearest, after it the first. */
static int carried_collect(Thin *thin, const ThinGroup *group, sqlite3_stmt *statement, size_t n_metrics)
{
    int answer = SQLITE_DONE;
    int r = 0;
    thin->n_carried = 0;
    (void)sqlite3_bind_int64(statement, 1, group->first);
    (void)sqlite3_bind_int64(statement, 2, group->last);
    while (r >= 0 && (answer = sqlite3_step(statement)) == SQLITE_ROW) {
        sqlite3_int64 moment = sqlite3_column_int64(statement, 0);
        bool second = moment - group->kept[0] >= group->kept[1] - moment;
        Carried *carried = carried_find(thin, sqlite3_column_int64(statement, 1));
        if (!carried) {
            r = -ENOMEM;
            break;
        }
        for (size_t i = 0; i < n_metrics; i++) {
            uint64_t value = U64_UNKNOWN;
            uint64_t *slot = &carried->values[second][i];
            if (column_figure(statement, (int)i + 2, &value) && value != U64_UNKNOWN &&
                (*slot == U64_UNKNOWN || moment <= group->kept[second]))
                *slot = value;
        }
    }
    (void)sqlite3_reset(statement);
    return r < 0 ? r : sqlite_errno(thin->db, answer);
}

static int carried_write(Thin *thin, const ThinGroup *group, sqlite3_stmt *statement, size_t n_metrics)
{
    int r = 0;
    for (size_t i = 0; i < thin->n_carried; i++)
        for (size_t j = 0; r >= 0 && j < 2; j++) {
            (void)sqlite3_bind_int64(statement, 1, group->kept[j]);
            (void)sqlite3_bind_int64(statement, 2, thin->carried[i].process); /* if there is one */
            for (size_t k = 0; k < n_metrics; k++)
                bind_figure(statement, (int)k + 3, thin->carried[i].values[j][k]);
            r = statement_run(statement);
        }
    return r;
}

static int group_thin(Thin *thin, ThinGroup *group)
{
    bool any = false;
    int r = kept_choose(thin, group, &any);
    if (r < 0 || !any)
        return r;
    r = carried_collect(thin, group, thin->turns, TURN_METRICS);
    if (r >= 0)
        r = carried_write(thin, group, thin->turns_set, TURN_METRICS);
    if (r >= 0)
        r = carried_collect(thin, group, thin->job_turns, SEGMENT_KINDS);
    if (r >= 0)
        r = carried_write(thin, group, thin->job_turns_set, SEGMENT_KINDS);
    if (r >= 0)
        r = range_run(thin->delete_samples, group);
    if (r >= 0)
        r = range_run(thin->delete_moments, group);
    return r < 0 ? r : range_run(thin->delete_processes, group);
}

int thin_step(Thin *thin, sqlite3_int64 newest)
{
    for (size_t i = 0; i < THIN_LEVELS; i++) {
        ThinGroup group = {.first = thin->next[i], .last = thin->next[i] + levels[i].group - 1};
        if (newest - group.last < levels[i].age)
            continue;
        thin->next[i] = group.last + 1;
        return group_thin(thin, &group);
    }
    return 0;
}
