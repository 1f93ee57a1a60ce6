/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "macro.h"

/*
 * RESCUE_LEAST: the batches of a loader follow each other faster than this; a shorter time would exceed the
 * limit needlessly. RESCUE_MOST: a trainer whose steps take longer loses little by waiting this long.
 * RESCUE_FIRST: used while the pace is unknown. PACE_STEPS: a rescue is due after this many times the usual
 * time between two releases. CRAWL: how long a loader that progresses by rescues alone is left alone;
 * CRAWL_GROWS: by how much that time grows each time it is reported.
 */
static const double RESCUE_LEAST_SECONDS = 0.1;
static const double RESCUE_MOST_SECONDS = 5;
static const double RESCUE_FIRST_SECONDS = 0.5;
static const double PACE_STEPS = 2;
static const double CRAWL_SECONDS = 10;
static const double CRAWL_GROWS = 3;

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
    if (budget->n == 0 && request->asked - budget->busy > RESCUE_MOST_SECONDS)
        budget->crawl_since = 0; /* no request has waited for a while */
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
        double step = now - budget->progress; /* a time that ended in a rescue is not the pace */
        budget->pace = budget->pace > 0 ? budget->pace * 0.75 + step * 0.25 : step;
    }
    budget->released = budget->progress = now;
    budget->rescues = 0;
    budget->rescued = (Request){0};
    budget->crawl_since = 0;
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

static bool is_before(const Request *a, const Request *b)
{
    return a->batch < b->batch || (a->batch == b->batch && a->pid < b->pid);
}

static size_t next_in_turn(const Budget *budget)
{
    size_t next = 0;
    for (size_t i = 1; i < budget->n; i++)
        if (is_before(&budget->requests[i], &budget->requests[next]))
            next = i;
    return next;
}

static uint64_t missing_bytes(const Request *request)
{
    return request->bytes - request->held_bytes;
}

/* Whether the next request may exceed the limit now. */
static bool is_rescued(Budget *budget, const Request *next, const Facts *facts)
{
    if (missing_bytes(next) > facts->most_bytes)
        return false;
    if (next->pid == budget->rescued.pid && next->batch == budget->rescued.batch)
        return true;
    double since = MAX(budget->progress, budget->requests[0].asked);
    if (facts->now - since < rescue_seconds(budget))
        return false;
    budget->rescued = *next;
    budget->rescues++;
    budget->rescues_all++;
    return true;
}

static bool fits(const Budget *budget, const Facts *facts, uint64_t bytes)
{
    return bytes <= facts->spare_bytes && bytes <= budget->limit_bytes &&
           facts->used_bytes <= budget->limit_bytes - bytes;
}

/* The first request that cannot wait any longer, or n. */
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

static void wait_note(Budget *budget, const Facts *facts)
{
    uint64_t asked = 0;
    for (size_t i = 0; i < budget->n; i++) {
        budget->requests[i].waited = true;
        asked += missing_bytes(&budget->requests[i]);
    }
    if (budget->crawl_since == 0)
        budget->crawl_since = facts->now;
    if (facts->used_bytes + asked > budget->wanted_bytes) {
        budget->wanted_bytes = facts->used_bytes + asked;
        budget->wanted_exists = asked <= facts->spare_bytes;
    }
}

double budget_crawled(const Budget *budget, double now)
{
    return budget->n > 0 && budget->crawl_since > 0 ? now - budget->crawl_since : 0;
}

bool budget_crawl_is_due(Budget *budget, double now)
{
    double pause = CRAWL_SECONDS;
    if (budget_crawled(budget, now) < MAX(CRAWL_SECONDS, budget->pace * PACE_STEPS))
        return false;
    for (unsigned i = 0; i < budget->crawl_told; i++)
        pause *= CRAWL_GROWS;
    if (budget->crawl_told > 0 && now - budget->crawl_told_last < pause)
        return false;
    budget->crawl_told++;
    budget->crawl_told_last = now;
    return true;
}

Decision budget_decide(Budget *budget, const Facts *facts, Request *ret)
{
    if (budget->n == 0)
        return DECISION_NONE;
    budget->busy = facts->now;
    size_t next = next_in_turn(budget);
    if (fits(budget, facts, missing_bytes(&budget->requests[next]))) {
        budget->crawl_since = 0;
        return take(budget, next, DECISION_GRANTED, facts->now, ret);
    }

    size_t late = overdue(budget, facts);
    if (late < budget->n) {
        const Request *request = &budget->requests[late];
        bool want = missing_bytes(request) > facts->most_bytes;
        bool huge = budget->wished && request->bytes > budget->limit_bytes;
        budget->rescues_all += !huge && !want;
        if (!huge && !want)
            return take(budget, late, DECISION_GRANTED, facts->now, ret);
        if (request->asker != ASKER_OPTIONAL) {
            budget->refused_for_want = want && !huge;
            budget->refused_last = *request;
            budget->refused_when = facts->now;
            budget->refused++;
        }
        return take(budget, late, DECISION_REFUSED, facts->now, ret);
    }
    if (budget->requests[next].asker != ASKER_OPTIONAL &&
        is_rescued(budget, &budget->requests[next], facts)) {
        budget->progress = facts->now;
        return take(budget, next, DECISION_GRANTED, facts->now, ret);
    }
    wait_note(budget, facts);
    return DECISION_NONE;
}
