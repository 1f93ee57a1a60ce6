/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that judge, and by no others. */
#pragma once

#include "causes.h"
#include "explain.h"
#include "log-reader.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Up to this confidence a bus error may just as well come from a mapped file. */
#define BUS_DOUBTFUL 0.55

/* Either a log alone is judged (facts), or the end of a job (evidence). After a failure (r < 0) nothing more
 * is added. */
typedef struct CauseContext {
    const LogFacts *facts;            /* or NULL */
    Clue clue;                        /* the clue that decided; CLUES: an exception did, or nothing */
    const LoggedException *exception; /* the exception that decided, or NULL */
    const Evidence *evidence;         /* or NULL */
    Diagnosis
        *log; /* of the log alone, or of what the job's processes wrote (unknown when they wrote nothing) */
    const Machine *machine; /* or NULL */
    const GuardOffer *guard;
    Arena *arena;
    int r;
} CauseContext;

static inline const ClueSeen *clue_seen(const CauseContext *context, Clue clue)
{
    return &context->facts->clues[clue];
}

static inline bool clue_is_seen(const CauseContext *context, Clue clue)
{
    return context->facts->clues[clue].count > 0;
}

/* A container on macOS is a Linux of its own, even if it shows paths of its host. */
static inline bool log_is_macos(const CauseContext *context)
{
    return clue_is_seen(context, CLUE_IN_MACOS) && !clue_is_seen(context, CLUE_IN_DOCKER);
}

/* Text in the arena; "" when there is no memory. */
#define cause_printf(context, ...) cause_keep((context), arena_printf((context)->arena, __VA_ARGS__))
const char *cause_keep(CauseContext *context, const char *text); /* NULL: there was no memory for it */
const char *cause_escape(CauseContext *context, Text text); /* text of unknown origin, made safe to show */
const char *cause_frame(CauseContext *context, const Frame *frame); /* "train.py line 3, in f" */

void diagnosis_set(Diagnosis *diagnosis, CauseId id, double confidence, const char *summary);

/* What goes beyond the limit of a list is left out. */
enum { MATCHED_MAX = 12 };
void diagnosis_evidence(CauseContext *context, Diagnosis *diagnosis, const char *text);
void diagnosis_match(CauseContext *context, Diagnosis *diagnosis, const char *line);
void diagnosis_note(CauseContext *context, Diagnosis *diagnosis, const char *text);

/* Begins a sentence: "The command (pid 7)", "DataLoader worker 7", "Process 7 (ffmpeg)". */
const char *ended_who(CauseContext *context, const Ended *ended);
const char *signal_name(CauseContext *context, int signo); /* as SIGNAL_TEXT */

/* The signal that ended it, as far as its own fault or status says; 0: no signal. */
int ended_signal(const Ended *ended);

/* Another process sent the signal: this one did not crash. */
bool fault_is_sent(const Ended *ended);

/* A line on standard error mentions this pid. */
bool text_names_pid(const Evidence *evidence, int pid);

typedef enum Fullness {
    FULLNESS_UNKNOWN,
    FULLNESS_ROOM,
    FULLNESS_NEARLY,
    FULLNESS_FULL,
} Fullness;

Fullness shm_fullness(uint64_t size_bytes, uint64_t free_bytes);
void evidence_shm(CauseContext *context, Diagnosis *diagnosis); /* how full /dev/shm was at its fullest */

/* Judges the death of one process by its signal, its fault and the kernel's counters. ret is unknown where
 * these do not show the cause. */
void death_judge(CauseContext *context, const Ended *ended, Diagnosis *ret);

/* The OOM kill of this process in the kernel's log; NULL: the log has none. */
const OomKill *kill_logged(const CauseContext *context, int pid);

/* A process was killed by SIGKILL, or is only reported to have been: was it the OOM killer? `who` begins a
 * sentence; ended may be NULL. */
void kill_judge(CauseContext *context, int pid, const Ended *ended, const char *who, Diagnosis *ret);

/* SIGBUS at an unknown address. */
void bus_judge_blind(CauseContext *context, const Ended *ended, const char *who, bool trains, Diagnosis *ret);

/* What became of the requests for shared memory that were refused. */
typedef enum RefusalState {
    REFUSALS_NONE,
    REFUSALS_HANDLED, /* by the command: it went on with less */
    REFUSALS_UNCLEAR,
    REFUSALS_LOST, /* a batch is missing */
} RefusalState;
RefusalState refusals_judge(const Evidence *evidence);
uint64_t refused_most_bytes(const Evidence *evidence); /* the largest request */

/* The job ended because of a refusal. */
void budget_judge(CauseContext *context, double confidence, Diagnosis *ret);

/* The command exited with 0 although batches are missing, or may be. False: none are, as far as is known. */
bool lost_judge_good(CauseContext *context, Diagnosis *ret);

/* ret is an exception that no pattern knows. If it follows from a refusal, ret says so; otherwise the result
 * is false and ret is unchanged. */
bool lost_judge_exception(CauseContext *context, Diagnosis *ret);

void diagnosis_notes(CauseContext *context, Diagnosis *diagnosis); /* of a log: the misconceptions */
void diagnosis_fixes(CauseContext *context, Diagnosis *diagnosis); /* what to do, ranked */
