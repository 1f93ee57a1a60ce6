#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "macro.h"

/*
 * RESCUE_LEAST: a loader's batches follow each other more closely; less would pass the ceiling for nothing.
 * RESCUE_MOST: a trainer that takes longer for a step does not lose much by waiting as long.
 * RESCUE_FIRST: while the pace is not known.
 * AT_ONCE, COPY_BYTES: between two tensors of one batch there is only the copying of one, at about a GiB/s.
 * PACE_STEPS: a rescue is due when so many times the usual time between two releases has passed.
 */
static const double RESCUE_LEAST_SECONDS = 0.1;
static const double RESCUE_MOST_SECONDS = 5;
static const double RESCUE_FIRST_SECONDS = 0.5;
static const double PACE_STEPS = 2;
static const double AT_ONCE_SECONDS = 0.01;
static const double COPY_BYTES = 1 << 30;

void budget_free(Budget *budget)
{
    free(budget->requests);
    *budget = (Budget){0};
}

int budget_ask(Budget *budget, const Request *request)
{
    if (budget->n == budget->capacity) {
        size_t capacity = MAX(budget->capacity * 2, (size_t)16);
        Request *requests = reallocarray(budget->requests, capacity, sizeof *requests);
        if (!requests)
            return -ENOMEM;
        budget->requests = requests;
        budget->capacity = capacity;
    }
    budget->requests[budget->n++] = *request;
    return 0;
}

static void remove_at(Budget *budget, size_t i)
{
    budget->n--;
    memmove(&budget->requests[i], &budget->requests[i + 1], (budget->n - i) * sizeof budget->requests[0]);
}

void budget_withdraw(Budget *budget, uint64_t id)
{
    for (size_t i = 0; i < budget->n; i++)
        if (budget->requests[i].id == id) {
            remove_at(budget, i);
            return;
        }
}

void budget_released(Budget *budget, double now)
{
    if (budget->released > 0) {
        double step = now - budget->progress; /* that somebody had to be rescued first is not the pace */
        budget->pace = budget->pace > 0 ? budget->pace * 0.75 + step * 0.25 : step;
    }
    budget->released = budget->progress = now;
    budget->rescues = 0;
    budget->rescued = 0;
}

static double rescue_seconds(const Budget *budget)
{
    double seconds = budget->pace > 0
                         ? MIN(MAX(budget->pace * PACE_STEPS, RESCUE_LEAST_SECONDS), RESCUE_MOST_SECONDS)
                         : RESCUE_FIRST_SECONDS;
    for (unsigned i = 0; i < budget->rescues && seconds < RESCUE_MOST_SECONDS; i++)
        seconds = MIN(seconds * 2, RESCUE_MOST_SECONDS);
    return seconds;
}

static bool is_before(int pid, Turn turn, int other_pid, Turn other)
{
    bool served = turn.taken > turn.let_go;
    bool other_served = other.taken > other.let_go;
    if (served != other_served)
        return other_served;
    return turn.let_go < other.let_go || (turn.let_go == other.let_go && pid < other_pid);
}

static size_t next_in_turn(const Budget *budget, const Facts *facts)
{
    size_t next = 0;
    Turn soonest = facts->turn_of(budget->requests[0].pid, facts->context);
    for (size_t i = 1; i < budget->n; i++) {
        int pid = budget->requests[i].pid;
        Turn turn = facts->turn_of(pid, facts->context);
        if (is_before(pid, turn, budget->requests[next].pid, soonest)) {
            next = i;
            soonest = turn;
        }
    }
    return next;
}

/* Who may pass the ceiling now, or n. Whoever has just done so and asks again at once has a batch of several
 * tensors half made. */
static size_t rescued(Budget *budget, size_t next, const Facts *facts)
{
    for (size_t i = 0; budget->rescued != 0 && i < budget->n; i++) {
        const Request *request = &budget->requests[i];
        if (request->pid == budget->rescued && request->bytes <= facts->most_bytes &&
            request->asked - budget->progress < AT_ONCE_SECONDS + (double)request->bytes / COPY_BYTES)
            return i;
    }
    double since = MAX(budget->progress, budget->requests[0].asked);
    if (budget->requests[next].bytes > facts->most_bytes || facts->now - since < rescue_seconds(budget))
        return budget->n;
    budget->rescued = budget->requests[next].pid;
    budget->rescues++;
    return next;
}

static bool fits(const Budget *budget, const Facts *facts, uint64_t bytes)
{
    return bytes <= facts->spare_bytes && bytes <= budget->limit_bytes &&
           facts->used_bytes <= budget->limit_bytes - bytes;
}

/* The first that cannot wait any longer, or n. */
static size_t overdue(const Budget *budget, const Facts *facts)
{
    for (size_t i = 0; i < budget->n; i++)
        if ((budget->wished && budget->requests[i].bytes > budget->limit_bytes) ||
            facts->now - budget->requests[i].asked >= budget->wait_seconds)
            return i;
    return budget->n;
}

static Decision take(Budget *budget, size_t i, Decision decision, double now, Request *ret)
{
    *ret = budget->requests[i];
    if (ret->waited) {
        budget->waits++;
        budget->waited_seconds += now - ret->asked;
    }
    remove_at(budget, i);
    return decision;
}

Decision budget_decide(Budget *budget, const Facts *facts, Request *ret)
{
    if (budget->n == 0)
        return DECISION_NONE;
    size_t next = next_in_turn(budget, facts);
    if (fits(budget, facts, budget->requests[next].bytes))
        return take(budget, next, DECISION_GRANTED, facts->now, ret);

    size_t late = overdue(budget, facts);
    if (late < budget->n) {
        const Request *request = &budget->requests[late];
        bool want = request->bytes > facts->most_bytes;
        bool huge = budget->wished && request->bytes > budget->limit_bytes;
        if (!huge && !want)
            return take(budget, late, DECISION_GRANTED, facts->now, ret);
        budget->refused_for_want = want && !huge;
        budget->refused_last = *request;
        budget->refused++;
        return take(budget, late, DECISION_REFUSED, facts->now, ret);
    }
    size_t passing = rescued(budget, next, facts);
    if (passing < budget->n) {
        budget->progress = facts->now;
        return take(budget, passing, DECISION_GRANTED, facts->now, ret);
    }
    for (size_t j = 0; j < budget->n; j++)
        budget->requests[j].waited = true;
    return DECISION_NONE;
}
