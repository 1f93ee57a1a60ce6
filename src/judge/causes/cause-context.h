/* SPDX-License-Identifier: Apache-2.0 */
/* The judging at work: shared by the files of the causes alone. */
#pragma once

#include "causes.h"
#include "explain.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* After a failure (r < 0) nothing more is added. */
typedef struct CauseContext {
    const Evidence *evidence;
    const Machine *machine; /* or NULL */
    const GuardOffer *guard;
    Arena *arena;
    Explanation text; /* of all that processes wrote, one after the other; unknown when they wrote nothing */
    int r;
} CauseContext;

/* One answer, until a better one is found. */
typedef struct Diagnosis {
    Cause cause;
    const char *detail;
    const Ended *ended; /* the death that it is about, or NULL */
    bool from_text;     /* the explanation's own: its fixes fit */
} Diagnosis;

/* Text in the arena; "" when there is no memory. */
#define cause_printf(context, ...) cause_keep((context), arena_printf((context)->arena, __VA_ARGS__))
const char *cause_keep(CauseContext *context, const char *text); /* NULL: there was no memory for it */
const char *cause_escape(CauseContext *context, Text text);      /* a stranger's, made fit to be shown */

void diagnosis_set(Diagnosis *diagnosis, CauseId id, double confidence, const char *summary);
void diagnosis_evidence(CauseContext *context, Diagnosis *diagnosis, const char *text);

/* Begins a sentence: "The command (pid 7)", "DataLoader worker 7", "Process 7 (ffmpeg)". */
const char *ended_who(CauseContext *context, const Ended *ended);
const char *ended_who_inside(CauseContext *context, const Ended *ended); /* the same inside of one */
const char *signal_name(CauseContext *context, int signo);               /* as SIGNAL_TEXT */

/* What ended it, as far as its own fault or status says; 0: no signal. */
int ended_signal(const Ended *ended);

/* Somebody else's kill, no fault of the process. */
bool fault_is_sent(const Ended *ended);

/* A line on standard error tells of this pid. */
bool text_names_pid(const Evidence *evidence, int pid);

typedef enum Fullness {
    FULLNESS_UNKNOWN,
    FULLNESS_ROOM,
    FULLNESS_NEARLY,
    FULLNESS_FULL,
} Fullness;

Fullness shm_fullness(uint64_t size_bytes, uint64_t free_bytes);

/* The death of one process, from its signal, its fault and the kernel's counters. ret is unknown where they
 * do not tell. */
void death_judge(CauseContext *context, const Ended *ended, Diagnosis *ret);

/* The kernel's log tells of its OOM kill; NULL: it does not, or not of this process. */
const OomKill *kill_logged(const CauseContext *context, int pid);

/* A process was killed by SIGKILL, or is only said to have been: by the OOM killer? `who` begins a sentence,
 * ended may be NULL. */
void kill_judge(CauseContext *context, int pid, const Ended *ended, const char *who, Diagnosis *ret);

/* SIGBUS, and nobody knows where. */
void bus_judge_blind(CauseContext *context, const Ended *ended, const char *who, bool trains, Diagnosis *ret);

/* What became of the requests for shared memory that were refused. */
typedef enum RefusalState {
    REFUSALS_NONE,
    REFUSALS_HANDLED, /* by the command: it went on with less */
    REFUSALS_UNCLEAR,
    REFUSALS_LOST, /* what was to be sent is missing */
} RefusalState;
RefusalState refusals_judge(const Evidence *evidence);
uint64_t refused_most_bytes(const Evidence *evidence); /* the largest request */

/* The end is that of a refusal. */
void budget_judge(CauseContext *context, double confidence, Diagnosis *ret);

/* The command exited with 0 although batches are missing, or may be. False: none are, as far as is known. */
bool lost_judge_good(CauseContext *context, Diagnosis *ret);

/* ret is an exception of no special kind: does it follow from a refusal? False: ret is left as it is. */
bool lost_judge_exception(CauseContext *context, Diagnosis *ret);

/* What to do, ranked. */
void diagnosis_fixes(CauseContext *context, const Diagnosis *diagnosis, Fixes *fixes);
