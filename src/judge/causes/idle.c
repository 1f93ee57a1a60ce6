/* SPDX-License-Identifier: Apache-2.0 */
#include "idle.h"
#include "causes-text.h"

static bool is_training(const Unguarded *unguarded)
{
    return unguarded->role == ROLE_TRAINER || unguarded->role == ROLE_WORKER;
}

/* Nothing is known of a process that we may not look into: it may well be guarded. */
static bool is_without(const Unguarded *unguarded)
{
    return unguarded->why != ABSENCE_UNREADABLE_PROCESS && unguarded->why != ABSENCE_INNER_RUN;
}

const Unguarded *unguarded_worst(const Evidence *evidence)
{
    const Coverage *coverage = &evidence->coverage;
    for (size_t i = 0; i < coverage->n_unguarded; i++) {
        const Unguarded *unguarded = &coverage->unguarded[i];
        bool matters = is_training(unguarded) || (!evidence->shared && coverage->guarded == 0);
        if (evidence->guarded && matters && is_without(unguarded))
            return unguarded;
    }
    return NULL;
}

size_t unguarded_alike(const Evidence *evidence, const Unguarded *unguarded)
{
    size_t n = 0;
    for (size_t i = 0; i < evidence->coverage.n_unguarded; i++) {
        const Unguarded *other = &evidence->coverage.unguarded[i];
        n += other->why == unguarded->why && is_training(other) == is_training(unguarded);
    }
    return n;
}

static const Unguarded *first_of(const Coverage *coverage, Absence why)
{
    for (size_t i = 0; i < coverage->n_unguarded; i++)
        if (coverage->unguarded[i].why == why)
            return &coverage->unguarded[i];
    return NULL;
}

const Unguarded *unguarded_unreadable(const Evidence *evidence)
{
    return first_of(&evidence->coverage, ABSENCE_UNREADABLE_PROCESS);
}

Idle idle_judge(const Evidence *evidence)
{
    const Coverage *coverage = &evidence->coverage;
    if (!evidence->guarded || evidence->shared)
        return IDLE_NOT;
    const Unguarded *worst = unguarded_worst(evidence);
    if (worst && worst->why != ABSENCE_USER)
        return IDLE_NOT_LOADED;
    if (worst || evidence->turned_away > 0)
        return IDLE_OTHER_USER;
    if (first_of(coverage, ABSENCE_INNER_RUN))
        return IDLE_INNER_RUN;
    return coverage->guarded > 0 ? IDLE_NO_TENSORS : IDLE_UNKNOWN;
}

const char *idle_name(Idle idle)
{
    switch (idle) {
    case IDLE_UNKNOWN:
        return "unknown";
    case IDLE_NO_TENSORS:
        return "no-tensors";
    case IDLE_NOT_LOADED:
        return "not-loaded";
    case IDLE_OTHER_USER:
        return "other-user";
    case IDLE_INNER_RUN:
        return "inner-run";
    case IDLE_NOT:
        break;
    }
    return NULL;
}

static const struct {
    const char *name;
    const char *words;
} absences[ABSENCES] = {
    [ABSENCE_NONE] = {"none", ""},
    [ABSENCE_UNKNOWN] = {"unknown", ABSENT_UNKNOWN},
    [ABSENCE_OFF] = {"switched-off", ABSENT_OFF},
    [ABSENCE_NO_PRELOAD] = {"no-preload", ABSENT_NO_PRELOAD},
    [ABSENCE_OTHER_PRELOAD] = {"other-preload", ABSENT_OTHER_PRELOAD},
    [ABSENCE_NO_SOCKET] = {"no-socket", ABSENT_NO_SOCKET},
    [ABSENCE_STATIC] = {"static", ABSENT_STATIC},
    [ABSENCE_FOREIGN] = {"foreign", ABSENT_FOREIGN},
    [ABSENCE_SECURE] = {"set-user-id", ABSENT_SECURE},
    [ABSENCE_UNREADABLE_LIBRARY] = {"unreadable-library", ABSENT_UNREADABLE_LIBRARY},
    [ABSENCE_USER] = {"other-user", ABSENT_USER},
    [ABSENCE_INNER_RUN] = {"inner-run", ABSENT_INNER_RUN},
    [ABSENCE_UNREADABLE_PROCESS] = {"unreadable-process", ABSENT_UNREADABLE_PROCESS},
};

const char *absence_name(Absence why)
{
    return absences[why].name;
}

const char *absence_words(Absence why)
{
    return _(absences[why].words);
}
