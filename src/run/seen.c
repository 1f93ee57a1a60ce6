#include <string.h>
#include <sys/wait.h>

#include "seen.h"

/* Ended by a signal, or with another code than 0. */
static bool status_is_bad(int status)
{
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* How much is lost with it. */
typedef enum Worth {
    WORTH_ENDED_WELL,
    WORTH_UNKNOWN,
    WORTH_ENDED_BY_US,
    WORTH_ENDED_BADLY,
    WORTH_COMMAND,
} Worth;

static Worth worth_of(const Seen *seen)
{
    if (seen->is_command)
        return WORTH_COMMAND;
    if (seen->has_status && !status_is_bad(seen->status))
        return WORTH_ENDED_WELL;
    if (seen->by_us)
        return WORTH_ENDED_BY_US;
    return seen->has_status || seen->has_fault ? WORTH_ENDED_BADLY : WORTH_UNKNOWN;
}

/* Whether `a` is missed less than `b`, which is newer. Of bad ends the first ones tell most, for what came of
 * them follows; of others the last ones. */
static bool is_missed_less(const Seen *a, const Seen *b)
{
    Worth worth = worth_of(a);
    return worth < worth_of(b) || (worth == worth_of(b) && worth <= WORTH_UNKNOWN);
}

static bool is_wordy(const Seen *seen)
{
    return seen->path || seen->stack || seen->said;
}

static void words_free(Seen *seen)
{
    free(TAKE_PTR(seen->path));
    free(TAKE_PTR(seen->stack));
    free(TAKE_PTR(seen->said));
    seen->said_size = 0;
}

static void one_free(Seen *seen)
{
    actor_free(&seen->actor);
    words_free(seen);
}

void seen_free(SeenTable *table)
{
    for (size_t i = 0; i < table->n_live; i++)
        one_free(&table->live[i]);
    for (size_t i = 0; i < table->n_ended; i++)
        one_free(&table->ended[i]);
    free(table->live);
    free(table->ended);
    *table = (SeenTable){0};
}

/* Where pid is, or would be. */
static size_t live_place(const SeenTable *table, int pid)
{
    return LOWER_BOUND(i, table->n_live, table->live[i].actor.pid < pid);
}

Seen *seen_live(const SeenTable *table, int pid)
{
    size_t i = live_place(table, pid);
    return i < table->n_live && table->live[i].actor.pid == pid ? &table->live[i] : NULL;
}

static bool room_make(Seen **items, size_t n, size_t *capacity)
{
    if (n < *capacity)
        return true;
    size_t wanted = MAX(*capacity * 2, (size_t)64);
    Seen *larger = reallocarray(*items, wanted, sizeof *larger);
    if (!larger)
        return false;
    *items = larger;
    *capacity = wanted;
    return true;
}

Seen *seen_add(SeenTable *table, int pid, uint64_t start_ticks)
{
    if (!room_make(&table->live, table->n_live, &table->live_capacity))
        return NULL;
    size_t i = live_place(table, pid);
    memmove(table->live + i + 1, table->live + i, (table->n_live - i) * sizeof *table->live);
    table->n_live++;
    table->live[i] = (Seen){
        .actor = {.pid = pid, .start_ticks = start_ticks},
        .rss_peak_bytes = U64_UNKNOWN,
        .shm_peak_bytes = U64_UNKNOWN,
        .own_peak_bytes = U64_UNKNOWN,
    };
    return &table->live[i];
}

Seen *seen_ended(const SeenTable *table, int pid)
{
    for (size_t i = table->n_ended; i-- > 0;)
        if (table->ended[i].actor.pid == pid)
            return &table->ended[i];
    return NULL;
}

static void ended_remove(SeenTable *table, size_t i)
{
    one_free(&table->ended[i]);
    table->n_ended--;
    memmove(table->ended + i, table->ended + i + 1, (table->n_ended - i) * sizeof *table->ended);
}

/* The one that is missed least. There is one. */
static size_t ended_least(const SeenTable *table)
{
    size_t least = 0;
    for (size_t i = 1; i < table->n_ended; i++)
        if (!is_missed_less(&table->ended[least], &table->ended[i]))
            least = i;
    return least;
}

Seen *seen_end(SeenTable *table, Seen *live, double seconds)
{
    Seen seen = *live;
    size_t i = (size_t)(live - table->live);
    table->n_live--;
    memmove(table->live + i, table->live + i + 1, (table->n_live - i) * sizeof *table->live);
    actor_free(&seen.actor);
    seen.ended = seconds;

    if (table->n_ended >= SEEN_ENDED_MAX) {
        size_t least = ended_least(table);
        if (!is_missed_less(&table->ended[least], &seen)) {
            one_free(&seen);
            return NULL;
        }
        ended_remove(table, least);
    }
    if (!room_make(&table->ended, table->n_ended, &table->ended_capacity)) {
        one_free(&seen);
        return NULL;
    }
    table->ended[table->n_ended] = seen;
    return &table->ended[table->n_ended++];
}

static void wordy_count(Seen *items, size_t n, size_t *count, Seen **least)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_wordy(&items[i]))
            continue;
        ++*count;
        if (!*least || !is_missed_less(*least, &items[i]))
            *least = &items[i];
    }
}

/* Whether one more may have words. */
static bool words_make_room(SeenTable *table, const Seen *seen)
{
    size_t count = 0;
    Seen *least = NULL;
    wordy_count(table->ended, table->n_ended, &count, &least);
    wordy_count(table->live, table->n_live, &count, &least);
    if (count < SEEN_WORDY_MAX)
        return true;
    if (!is_missed_less(least, seen))
        return false;
    words_free(least);
    return true;
}

bool seen_quote(SeenTable *table, Seen *seen, char **slot, const char *text, size_t n)
{
    if (!is_wordy(seen) && !words_make_room(table, seen))
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
