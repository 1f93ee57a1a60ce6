/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/wait.h>

#include "process-log.h"

/* It ended by a signal, or with an exit code other than 0. */
static bool status_is_bad(int status)
{
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* How much would be lost with its record. */
typedef enum KeepRank {
    KEEP_ENDED_WELL,
    KEEP_UNKNOWN,
    KEEP_ENDED_BY_US,
    KEEP_ENDED_BADLY,
    KEEP_COMMAND,
} KeepRank;

static KeepRank keep_rank(const LoggedProcess *logged)
{
    if (logged->is_command)
        return KEEP_COMMAND;
    if (logged->has_status && !status_is_bad(logged->status))
        return KEEP_ENDED_WELL;
    if (logged->by_us)
        return KEEP_ENDED_BY_US;
    return logged->has_status || logged->has_fault ? KEEP_ENDED_BADLY : KEEP_UNKNOWN;
}

/* Whether losing `a` matters less than losing `b`, which is newer. Of bad ends the first ones tell most,
 * because the others follow from them; of other ends, the last ones. */
static bool is_missed_less(const LoggedProcess *a, const LoggedProcess *b)
{
    KeepRank worth = keep_rank(a);
    return worth < keep_rank(b) || (worth == keep_rank(b) && worth <= KEEP_UNKNOWN);
}

static bool is_wordy(const LoggedProcess *logged)
{
    return logged->path || logged->stack || logged->said;
}

static void words_free(LoggedProcess *logged)
{
    free(TAKE_PTR(logged->path));
    free(TAKE_PTR(logged->stack));
    free(TAKE_PTR(logged->said));
    logged->said_size = 0;
}

void process_log_free(ProcessLog *table)
{
    for (size_t i = 0; i < table->n_live; i++)
        words_free(&table->live[i]);
    for (size_t i = 0; i < table->n_ended; i++)
        words_free(&table->ended[i]);
    free(table->live);
    free(table->ended);
    *table = (ProcessLog){0};
}

/* Where pid is, or would be. */
static size_t live_place(const ProcessLog *table, int pid)
{
    return LOWER_BOUND(i, table->n_live, table->live[i].pid < pid);
}

LoggedProcess *process_log_live(const ProcessLog *table, int pid)
{
    size_t i = live_place(table, pid);
    return i < table->n_live && table->live[i].pid == pid ? &table->live[i] : NULL;
}

static bool room_make(LoggedProcess **items, size_t n, size_t *capacity)
{
    if (n < *capacity)
        return true;
    size_t wanted = MAX(*capacity * 2, (size_t)64);
    LoggedProcess *larger = reallocarray(*items, wanted, sizeof *larger);
    if (!larger)
        return false;
    *items = larger;
    *capacity = wanted;
    return true;
}

LoggedProcess *process_log_add(ProcessLog *table, int pid, uint64_t start_ticks)
{
    if (!room_make(&table->live, table->n_live, &table->live_capacity))
        return NULL;
    size_t i = live_place(table, pid);
    memmove(table->live + i + 1, table->live + i, (table->n_live - i) * sizeof *table->live);
    table->n_live++;
    table->live[i] = (LoggedProcess){
        .pid = pid,
        .start_ticks = start_ticks,
        .rss_peak_bytes = U64_UNKNOWN,
        .shm_peak_bytes = U64_UNKNOWN,
        .own_peak_bytes = U64_UNKNOWN,
    };
    return &table->live[i];
}

LoggedProcess *process_log_ended(const ProcessLog *table, int pid)
{
    for (size_t i = table->n_ended; i-- > 0;)
        if (table->ended[i].pid == pid)
            return &table->ended[i];
    return NULL;
}

static void ended_remove(ProcessLog *table, size_t i)
{
    words_free(&table->ended[i]);
    table->n_ended--;
    memmove(table->ended + i, table->ended + i + 1, (table->n_ended - i) * sizeof *table->ended);
}

/* The record whose loss matters least. There is at least one. */
static size_t ended_least(const ProcessLog *table)
{
    size_t least = 0;
    for (size_t i = 1; i < table->n_ended; i++)
        if (!is_missed_less(&table->ended[least], &table->ended[i]))
            least = i;
    return least;
}

LoggedProcess *process_log_end(ProcessLog *table, LoggedProcess *live, double seconds)
{
    LoggedProcess logged = *live;
    size_t i = (size_t)(live - table->live);
    table->n_live--;
    memmove(table->live + i, table->live + i + 1, (table->n_live - i) * sizeof *table->live);
    logged.ended = seconds;

    if (table->n_ended >= LOGGED_ENDED_MAX) {
        size_t least = ended_least(table);
        if (!is_missed_less(&table->ended[least], &logged)) {
            words_free(&logged);
            return NULL;
        }
        ended_remove(table, least);
    }
    if (!room_make(&table->ended, table->n_ended, &table->ended_capacity)) {
        words_free(&logged);
        return NULL;
    }
    table->ended[table->n_ended] = logged;
    return &table->ended[table->n_ended++];
}

static void wordy_count(LoggedProcess *items, size_t n, size_t *count, LoggedProcess **least)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_wordy(&items[i]))
            continue;
        ++*count;
        if (!*least || !is_missed_less(*least, &items[i]))
            *least = &items[i];
    }
}

/* Whether one more process may have words. */
static bool words_make_room(ProcessLog *table, const LoggedProcess *logged)
{
    size_t count = 0;
    LoggedProcess *least = NULL;
    wordy_count(table->ended, table->n_ended, &count, &least);
    wordy_count(table->live, table->n_live, &count, &least);
    if (count < LOGGED_WORDY_MAX)
        return true;
    if (!is_missed_less(least, logged))
        return false;
    words_free(least);
    return true;
}

bool process_log_quote(ProcessLog *table, LoggedProcess *logged, char **slot, const char *text, size_t n)
{
    if (!is_wordy(logged) && !words_make_room(table, logged))
        return false;
    char *copy = malloc(n + 1);
    if (!copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    free(*slot);
    *slot = copy;
    return true;
}
