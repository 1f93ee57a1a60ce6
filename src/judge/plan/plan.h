/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much shared memory a job needs, before it runs. Pure arithmetic over what the user knows about the job,
 * so that other programs can use it: no I/O, no state, no output. docs/planning.md derives the model from
 * what PyTorch does and says how it was verified.
 *
 * Words
 *
 * field: one tensor of a sample, as __getitem__ returns it.
 *
 * batch: what a worker makes of `batch` samples. The default collate stacks each field into one tensor; a
 * collate that returns lists keeps one tensor per sample. Each tensor is a segment of its own, rounded up to
 * whole pages.
 *
 * in flight: the batches of one loader that are alive at once. PyTorch keeps prefetch x workers of them on
 * order, and orders the next one whenever it hands one out; those that the trainer keeps come on top.
 *
 * handover: PyTorch orders the next batch before it returns the one that is due, and only then does the
 * trainer release its last one. A worker that needs no time for its samples may have the new one ready within
 * these milliseconds: one batch more than in flight, and never two.
 *
 * trainer: a process that trains. A job has one per rank on this node.
 *
 * A sum that does not fit 64 bits is an error, never a large number: -EOVERFLOW.
 */
#pragma once

#include <stdbool.h>

#include "arena.h"

enum { PLAN_BATCH_MOST = 1 << 30, PLAN_COUNT_MOST = 1 << 20, PLAN_ROWS_MOST = 1024, PLAN_LADDER = 3 };

#define PLAN_MARGIN_MOST 100.0

/* Above a quarter of the memory, shared memory is felt by everything else. */
#define PLAN_SHARE_WARN 0.25

/* --- The question --------------------------------------------------------------------------------------- */

typedef struct PlanLoader {
    uint64_t *field_bytes; /* of each field of a sample; none: batch_bytes is given */
    size_t n_fields;
    size_t fields_capacity;
    uint64_t batch_bytes; /* of a whole batch, taken as one tensor */
    uint64_t batch;       /* samples; 0: not known, which only batch_bytes allows */
    uint64_t workers;     /* at least 1 */
    uint64_t prefetch;    /* at least 1 */
    uint64_t held;        /* batches that the trainer keeps */
    bool list;            /* the collate keeps one tensor per sample */
} PlanLoader;

/* The segments that the trainers make to talk to each other. */
typedef enum PlanCollectives {
    COLLECTIVES_NONE,
    COLLECTIVES_NCCL,
    COLLECTIVES_GLOO,
} PlanCollectives;

/* What the answer is based on. */
typedef enum PlanBasis {
    BASIS_LOADERS,
    BASIS_PER_PROCESS, /* a figure that the user gave */
    BASIS_KIND,        /* a rule of thumb */
    BASIS_COMMAND,     /* measured while a command ran */
    BASIS_PROCESS,     /* measured once, of a running job */
} PlanBasis;

typedef enum PlanKind {
    PLAN_IMAGE,
    PLAN_AUDIO,
    PLAN_VIDEO,
    PLAN_MULTIMODAL,
    PLAN_KINDS,
} PlanKind;

typedef struct PlanQuestion {
    PlanBasis basis;
    const PlanLoader *loaders; /* of each trainer, alive together */
    size_t n_loaders;
    uint64_t per_process_bytes;       /* of bases without loaders: what one trainer takes */
    uint64_t per_process_guard_bytes; /* the same under the guard; 0: the same amount */
    PlanKind kind;
    bool file_system;    /* the sharing strategy, whose segments have a header each */
    uint64_t page_bytes; /* of the mount */
    PlanCollectives collectives;
    uint64_t ranks; /* trainers of a job that talk to each other */
    uint64_t jobs;
    uint64_t gpus; /* not 0: jobs are gpus x per_gpu_last */
    uint64_t per_gpu_first;
    uint64_t per_gpu_last;
    bool table;                 /* one row per number from per_gpu_first to per_gpu_last */
    double margin;              /* at least 1 */
    uint64_t shm_bytes;         /* room in /dev/shm; U64_UNKNOWN: not known or no limit */
    uint64_t memory_bytes;      /* RAM or the control group's limit; U64_UNKNOWN */
    uint64_t memory_room_bytes; /* how much of it is available; U64_UNKNOWN */
} PlanQuestion;

/* --- The answer ----------------------------------------------------------------------------------------- */

typedef struct LoaderNeed {
    uint64_t payload_bytes; /* of a batch, without rounding */
    uint64_t segments;      /* of a batch */
    uint64_t batch_bytes;   /* of a batch, as /dev/shm stores it */
    uint64_t in_flight;
    uint64_t semaphore_bytes; /* of the loader's queues */
    uint64_t bytes;           /* all of the above, for the batches in flight */
    uint64_t guard_bytes;     /* the same under the guard */
} LoaderNeed;

typedef struct PlanRow {
    uint64_t per_gpu;
    uint64_t processes;
    uint64_t base_bytes;
    uint64_t recommended_bytes;
} PlanRow;

/* A setting that takes no more than its share of the room. 0: none. */
typedef struct PlanStep {
    const char *name;
    double share;     /* of the room */
    uint64_t batch;   /* the largest, with the workers asked for; 0 also when the batch size is not known */
    uint64_t workers; /* the most, with the batch size asked for */
} PlanStep;

typedef struct Plan {
    LoaderNeed *loaders;
    size_t n_loaders;
    size_t loaders_capacity;
    uint64_t batch_bytes; /* of the loader with the largest; U64_UNKNOWN without loaders */
    uint64_t in_flight;   /* batches of one trainer, all loaders together; U64_UNKNOWN without loaders */
    uint64_t per_trainer_bytes;
    uint64_t handover_bytes; /* of one trainer: one batch per loader, which may come on top for a moment */
    uint64_t trainers;
    uint64_t base_bytes;
    uint64_t bound_bytes;      /* with the handover of every trainer: no peak exceeds it */
    uint64_t collective_bytes; /* estimated; not part of base_bytes, but of the sizes below */
    uint64_t tight_bytes;      /* with the margin, or with the handover if that is more */
    uint64_t recommended_bytes;
    uint64_t guard_bytes;  /* RAM under the guard, where each worker keeps what it once had in use */
    size_t largest_loader; /* the one that is varied to find the fields below */
    uint64_t room_bytes;   /* the smaller of /dev/shm and memory; U64_UNKNOWN */
    bool fits;
    double memory_share; /* of recommended_bytes; 0: not known */
    bool has_largest;
    uint64_t largest_batch; /* with largest_workers; 0: the batch size is not known */
    uint64_t largest_workers;
    uint64_t largest_trainers; /* U64_UNKNOWN */
    PlanStep ladder[PLAN_LADDER];
    size_t n_ladder;
    PlanRow *table;
    size_t n_table;
    size_t table_capacity;
    const char **notes;
    size_t n_notes;
    size_t notes_capacity;
} Plan;

/* -EOVERFLOW. */
int plan_loader_need(const PlanLoader *loader, bool file_system, uint64_t page_bytes, LoaderNeed *ret);

/* The answer lives in arena. -EOVERFLOW, -ENOMEM. */
int plan_make(const PlanQuestion *question, Arena *arena, Plan *ret);

/* Adds to the notes of plan_make. -ENOMEM. */
int plan_note(Plan *plan, Arena *arena, const char *note);

/*
 * What a loader that took `bytes` with one setting takes with another: in proportion to the batches that are
 * alive and to the samples in each. -ENODATA: there were no workers, so there is nothing to scale.
 * -EOVERFLOW.
 */
typedef struct PlanSetting {
    uint64_t batch;   /* 0 in either setting: not scaled */
    uint64_t workers; /* 0: they share nothing */
    uint64_t prefetch;
    uint64_t held;
    bool guarded; /* the bytes are those of the guard's pools, as plan_guard_batches counts them */
} PlanSetting;
int plan_scale(uint64_t bytes, const PlanSetting *from, const PlanSetting *to, uint64_t *ret_bytes);

/*
 * How many batches the guard keeps in memory for a loader. Each worker has a pool of its own, and sooner or
 * later each has had as many of its batches alive as it can: those ordered from it, and its share of those
 * that the trainer keeps and of the one that is handed over. -EOVERFLOW.
 */
int plan_guard_batches(uint64_t workers, uint64_t prefetch, uint64_t held, uint64_t *ret);

const char *plan_basis_name(PlanBasis basis);
extern const char *const plan_kind_names[]; /* NULL-terminated */
extern const char *const plan_collectives_names[];
