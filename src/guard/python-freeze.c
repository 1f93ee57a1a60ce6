/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "freeze.h"
#include "guard.h"

/*
 * What the text that freezes datasets (python/freeze.py) may call. docs/freeze.md says what it does.
 *
 * What is frozen is never freed. So that a program cannot lose memory to it again and again:
 *
 * - Each dataset is frozen once. What the program adds to it later is not.
 *
 * - When workers are started, all datasets that were frozen are looked at. If the program has dropped one, or
 *   has replaced what was in it, this process freezes nothing more, ever: it is a program that makes its
 *   data anew, and what was frozen stays until the process ends, with all that it has put into frozen
 *   containers since. (A few names, numbers and tuples do not count: every dataset has some.)
 *
 * - What all living processes of the job have frozen together is limited.
 *
 * A dataset is watched by a weak reference. Lists and other builtin containers cannot have one. If such a
 * dataset is closed, it is watched by a reference, and has been dropped when that is the last one; what it
 * keeps until then is frozen anyway. Any other is recognised by its address as long as it is the dataset that
 * is loaded, and counts as dropped when another one is.
 *
 * All of this runs with the interpreter's lock, and no code of the program runs meanwhile, except that a
 * weak reference's allocation may start the garbage collector, which may call a finalizer that starts
 * workers: `busy`. fork copies the records, which are as true in the child: it has the same datasets. The
 * child's share is its own, since its pid is another. An interpreter that is started after another one has
 * been finalized finds the records of the first: their references keep what they refer to in memory, and the
 * datasets are gone, so that it freezes nothing.
 */

typedef struct Frozen {
    Object *watched; /* a weak reference, or the dataset itself; NULL: neither */
    Object *address; /* of the dataset, never followed */
    bool is_dataset; /* watched is */
    bool is_gone;
    uint64_t bytes;
    FreezeRoots roots;
} Frozen;

enum { FROZEN_MAX = 64, LEFT_LEAST_BYTES = 64 * 1024 };

static Frozen records[FROZEN_MAX];
static size_t n_records;
static uint64_t left_bytes; /* of those that are gone */
static bool is_stopped;
static bool busy;
static ObjectTypes *types;
static Object *none;

static uint64_t immortal_count(void)
{
    enum { MINOR_FLAGGED = 14 };
    /* 3.12 and 3.13: all 32 bits, so that counting up overflows to zero and is not stored. From 3.14 on: the
     * middle of what counts as immortal, and a flag. */
    return python_minor() < MINOR_FLAGGED ? UINT32_MAX : UINT64_C(3) << 30 | UINT64_C(1) << 48;
}

static uint64_t now_usec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void freeze_decline(FreezeWhy why)
{
    atomic_fetch_or_explicit(&counters_reached()->freeze_whys, 1U << (unsigned)why, memory_order_relaxed);
}

/* --- How much --- */

static uint64_t limit_bytes(const Counters *counters)
{
    enum { PART = 4 };
    uint64_t limit = atomic_load_explicit(&counters->freeze_limit, memory_order_relaxed);
    struct sysinfo info;
    if (limit == 0 && sysinfo(&info) == 0)
        limit = (uint64_t)info.totalram * info.mem_unit / PART;
    return limit;
}

static bool pid_is_free(int32_t pid)
{
    return pid == 0 || (kill(pid, 0) != 0 && errno == ESRCH);
}

/* Ours; NULL: all are in use. */
static FreezeShare *share_take(Counters *counters)
{
    int32_t self = getpid();
    FreezeShare *ours = NULL;
    for (size_t i = 0; i < FREEZE_SHARES && !ours; i++)
        if (atomic_load_explicit(&counters->freeze_shares[i].pid, memory_order_relaxed) == self)
            ours = &counters->freeze_shares[i];
    bool is_new = !ours || n_records == 0; /* this was another program, or another process had our pid */
    for (size_t i = 0; i < FREEZE_SHARES && !ours; i++) {
        FreezeShare *share = &counters->freeze_shares[i];
        int32_t pid = atomic_load_explicit(&share->pid, memory_order_relaxed);
        if (pid_is_free(pid) && atomic_compare_exchange_strong(&share->pid, &pid, self))
            ours = share;
    }
    if (ours && is_new)
        atomic_store(&ours->bytes, 0);
    return ours;
}

static FreezeShare *our_share;

/*
 * Room is taken before it is used, so that processes that freeze at the same time stay below the limit
 * together: each adds to its own share first, and looks at the sum then. Of two that pass the limit at the
 * same moment, both may give back.
 */
static bool share_add(Counters *counters, uint64_t bytes)
{
    uint64_t sum = 0;
    atomic_fetch_add(&our_share->bytes, bytes);
    for (size_t i = 0; i < FREEZE_SHARES; i++) {
        FreezeShare *share = &counters->freeze_shares[i];
        if (!pid_is_free(atomic_load(&share->pid)))
            sum += atomic_load(&share->bytes);
    }
    if (sum <= limit_bytes(counters))
        return true;
    atomic_fetch_sub(&our_share->bytes, bytes);
    return false;
}

static uint64_t room_bytes; /* of our share: not used yet */

static uint64_t freeze_more(uint64_t objects, uint64_t bytes, uint64_t wanted)
{
    enum { ROOM_BYTES = 1 << 20 };
    Counters *counters = guard_counters();
    atomic_fetch_add_explicit(&counters->freeze_objects, objects, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->freeze_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->freezing_objects, objects, memory_order_relaxed);
    atomic_store_explicit(&counters->freezing_msec, now_msec(), memory_order_relaxed);
    room_bytes -= bytes;
    if (wanted > room_bytes) {
        uint64_t missing = wanted - room_bytes;
        if (missing < ROOM_BYTES && share_add(counters, ROOM_BYTES))
            room_bytes += ROOM_BYTES;
        else if (share_add(counters, missing))
            room_bytes += missing;
    }
    return room_bytes;
}

/* --- Which --- */

static bool record_is_dropped(const Frozen *record, Object *dataset)
{
    if (!record->watched)
        return record->address != dataset;
    return record->is_dataset ? object_head(record->watched)->count == 1
                              : PyWeakref_GetObject(record->watched) == none;
}

static bool record_is_of(const Frozen *record, Object *dataset)
{
    return !record->is_gone &&
           (record->watched && !record->is_dataset ? PyWeakref_GetObject(record->watched) == dataset
                                                   : record->address == dataset);
}

static void record_end(Frozen *record)
{
    record->is_gone = true;
    left_bytes += record->bytes;
    if (left_bytes >= LEFT_LEAST_BYTES || record->roots.may_change) {
        is_stopped = true;
        freeze_decline(FREEZE_DROPPED);
    }
    atomic_fetch_add_explicit(&guard_counters()->freeze_left_bytes, record->bytes, memory_order_relaxed);
    if (record->watched)
        Py_DecRef(record->watched);
    record->watched = NULL;
}

/* Looks at all that were frozen. The dataset's own record; NULL: it has none. */
static const Frozen *records_look(Object *dataset)
{
    const Frozen *ours = NULL;
    for (size_t i = 0; i < n_records; i++) {
        Frozen *record = &records[i];
        bool is_ours = record_is_of(record, dataset);
        if (is_ours)
            ours = record;
        if (!record->is_gone &&
            (record_is_dropped(record, dataset) ||
             (is_ours && !freeze_is_intact(types, dataset, immortal_count(), &record->roots))))
            record_end(record);
    }
    return ours;
}

static Object *weak_reference(Object *dataset)
{
    Object *weak = PyWeakref_NewRef(dataset, NULL);
    if (!weak)
        PyErr_Clear(); /* its type has none */
    return weak;
}

/* A free place; NULL: there are too many. */
static Frozen *record_place(void)
{
    for (size_t i = 0; i < n_records; i++)
        if (records[i].is_gone)
            return &records[i];
    return n_records < FROZEN_MAX ? &records[n_records++] : NULL;
}

static void dataset_freeze(Object *dataset, Frozen *record)
{
    Counters *counters = guard_counters();
    FreezeWalk walk;
    *record = (Frozen){.watched = weak_reference(dataset), .address = dataset};
    uint64_t began = now_usec();
    room_bytes = 0;
    atomic_store_explicit(&counters->freezing_objects, 0, memory_order_relaxed);
    atomic_store_explicit(&counters->freezing_since, now_msec(), memory_order_relaxed);
    WalkEnd end = freeze_walk(types, dataset, immortal_count(), freeze_more, &walk);
    atomic_store_explicit(&counters->freezing_since, 0, memory_order_relaxed);
    atomic_fetch_sub(&our_share->bytes, room_bytes);
    atomic_fetch_add_explicit(&counters->freeze_usec, now_usec() - began, memory_order_relaxed);
    if (end == WALK_LIMIT)
        freeze_decline(FREEZE_FULL);
    if (end == WALK_NO_MEMORY)
        freeze_decline(FREEZE_MEMORY);
    if (!record->watched && walk.is_closed) {
        Py_IncRef(dataset);
        record->watched = dataset;
        record->is_dataset = true;
    }
    record->bytes = walk.bytes;
    freeze_look(types, dataset, immortal_count(), &record->roots);
}

static void dataset_consider(Object *dataset, const Specimens *specimens)
{
    if (!types) {
        void *room =
            real_mmap(NULL, sizeof *types, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED)
            return;
        types = room;
    }
    none = python_symbol("_Py_NoneStruct");
    our_share = share_take(counters_reached());
    if (!freeze_functions_find() || !objects_are_known(types, specimens, immortal_count())) {
        freeze_decline(FREEZE_BUILD);
        return;
    }
    Frozen *record = records_look(dataset) || is_stopped || !our_share ? NULL : record_place();
    if (record)
        dataset_freeze(dataset, record);
}

static Object *part_freeze(Object *self, Object *arguments)
{
    (void)self;
    Object *dataset = NULL;
    Specimens specimens = {0};
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOK", &dataset, &specimens.probe, &specimens.attribute,
                          &specimens.owner, &specimens.names, &specimens.leaves, &specimens.deque,
                          &specimens.default_dict, &specimens.array, &specimens.array_address))
        return NULL;
    if (!busy) {
        busy = true;
        dataset_consider(dataset, &specimens);
        busy = false;
    }
    return PyLong_FromLong(0);
}

static Object *part_decline(Object *self, Object *arguments)
{
    (void)self;
    int why = 0;
    if (!PyArg_ParseTuple(arguments, "i", &why))
        return NULL;
    freeze_decline((FreezeWhy)why);
    return PyLong_FromLong(0);
}

static Method methods[] = {
    {"freeze", part_freeze, METHOD_ARGUMENTS, NULL},
    {"decline", part_decline, METHOD_ARGUMENTS, NULL},
    {NULL, NULL, 0, NULL},
};

static bool freeze_is_wanted(void)
{
    return !python_part_is_off(PROTOCOL_FREEZE);
}

static void python_decline(void)
{
    freeze_decline(FREEZE_PYTHON);
}

const PythonPart freeze_part = {
    .text = python_freeze,
    .name = "_shmguard_freeze",
    .home = "multiprocessing.context",
    .needs = "torch.utils.data._utils.worker",
    .minor_least = 12,
    .minor_most = 14,
    .methods = methods,
    .is_wanted = freeze_is_wanted,
    .decline = python_decline,
};
