/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"
#include "linker-versions.h"
#include "native-hooks.h"
#include "python-frames.h"
#include "python-part.h"

/*
 * Which Python line memory was allocated under that stays allocated, for memory that does not pass Python's
 * allocators: tensors, and what extensions take. Of all bytes, every 512 KiB or so one is drawn, as a Poisson
 * process does: an allocation is sampled with a probability that depends on its size alone, and stands for
 * its size divided by that probability. What was sampled and not freed when the window ends is what grew. In
 * the middle the same is summed up, so that memory that is always replaced does not count as the second
 * half's.
 *
 * The allocator is called as ever, with the same arguments, and what it returns is passed on. Nothing is
 * allocated here, no lock is taken, and nothing waits: a table that is full loses a sample. Signal handlers
 * that allocate, or interrupt an allocation, find `inside` set and are not sampled.
 *
 * The table: buckets of eight addresses, a cache line each, so that a free that has nothing to do with us
 * costs one. A thread takes an empty place by compare-and-swap (BUSY), fills in what belongs to it and puts
 * the address there; removing is one compare-and-swap. An address is freed at most once while it is in the
 * table. If a free was not seen (glibc frees what it has allocated itself, and a library loaded during the
 * window is not exchanged), the address is removed when it is returned by an allocation again.
 *
 * fork: the child samples nothing. Its table is a copy that is never read.
 */
enum {
    BUCKETS = 2048,
    PLACES = 8,
    SITES = 1024,
    BUSY = 1,
    SAMPLES_FAST = 20000, /* after so many the mean distance doubles: 5% of the time must be enough */
    NAMED = 16,
};
#define MEAN_BYTES (512.0 * 1024)

typedef struct Bucket {
    _Alignas(64) _Atomic(uintptr_t) places[PLACES];
} Bucket;

/* In the middle it is read while another thread may replace it. */
typedef struct NativeSample {
    _Atomic(uint32_t) site; /* its number, plus one; 0: no Python line */
    _Atomic(float) bytes;
} NativeSample;

typedef struct NativeSite {
    _Atomic(uint64_t) key; /* 0: empty */
    atomic_bool known;     /* what follows is there */
    int line;
    char file[160];
    char name[80];
} NativeSite;

static Bucket table[BUCKETS];
static NativeSample samples[BUCKETS][PLACES];
static NativeSite sites[SITES];
static atomic_bool on;
static atomic_uint drawn;
static NativeFiles files; /* what these map for themselves is not ours to count */

static __thread bool inside __attribute__((tls_model("initial-exec")));
static __thread double distance __attribute__((tls_model("initial-exec"))); /* bytes to the next one */
static __thread uint64_t seed __attribute__((tls_model("initial-exec")));

/* --- Chance ------------------------------------------------------------------------------------------- */

static uint64_t random_next(void)
{
    if (seed == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = ((uint64_t)now.tv_nsec << 20 ^ (uint64_t)(uintptr_t)&seed) | 1;
    }
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* -ln(x) for 0 < x <= 1, within a thousandth: this library has no libm. x = m * 2^-e with 0.5 <= m <= 1, and
 * ln(m) by the series of the inverse hyperbolic tangent. */
static double minus_log(double x)
{
    double e = 0;
    while (x < 0.5) {
        x *= 2;
        e++;
    }
    double y = (x - 1) / (x + 1);
    double square = y * y;
    return e * 0.6931471805599453 -
           2 * y * (1 + square / 3 + square * square / 5 + square * square * square / 7);
}

static double mean(void)
{
    return atomic_load_explicit(&drawn, memory_order_relaxed) < SAMPLES_FAST ? MEAN_BYTES : 2 * MEAN_BYTES;
}

static double distance_draw(void)
{
    double uniform = (double)((random_next() >> 11) + 1) * 0x1p-53;
    return minus_log(uniform) * mean();
}

/* size / (1 - exp(-size / mean)) */
static float bytes_stood_for(size_t size)
{
    double x = (double)size / mean();
    if (x > 16)
        return (float)size;
    double power = 1 - x / 1024;
    for (int i = 0; i < 10; i++)
        power *= power;
    return (float)((double)size / (1 - power));
}

/* --- Sites -------------------------------------------------------------------------------------------- */

static bool is_library(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           strstr(file, "/lib/python3") || file[0] == '<';
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

/* By code object, whose addresses are even: the lowest bit says whether its file is a library's. A code
 * object may be freed and another one take its place: then a frame more or less counts as the program's own.
 */
static _Atomic(uintptr_t) judged[512];

static bool place_is_library(const PythonPlace *place)
{
    uintptr_t code = (uintptr_t)place->code;
    _Atomic(uintptr_t) *slot = &judged[mix(code, 0) % (sizeof judged / sizeof judged[0])];
    uintptr_t known = atomic_load_explicit(slot, memory_order_relaxed);
    if ((known & ~(uintptr_t)1) == code)
        return known & 1;
    char file[sizeof sites[0].file];
    bool library = !frame_file(place, file, sizeof file) || is_library(file);
    atomic_store_explicit(slot, code | library, memory_order_relaxed);
    return library;
}

/* The nearest frame of the program's own; if it has none, the nearest one. */
static bool place_find(PythonPlace *ret)
{
    PythonFrames frames;
    PythonPlace place;
    bool any = false;
    frames_begin(&frames);
    while (frames_next(&frames, &place)) {
        bool own = !place_is_library(&place);
        if (own || !any)
            *ret = place;
        any = true;
        if (own)
            break;
    }
    return any;
}

/* The number of the site plus one; 0: none, or there are too many. */
static uint32_t site_now(void)
{
    PythonPlace place;
    if (!place_find(&place))
        return 0;
    int line = frame_line(&place);
    uint64_t key = mix((uint64_t)(uintptr_t)place.code, (uint64_t)line) | 1;
    for (size_t i = 0; i < SITES; i++) {
        size_t at = (key + i) % SITES;
        uint64_t none = 0;
        if (atomic_load_explicit(&sites[at].key, memory_order_relaxed) == key)
            return (uint32_t)at + 1;
        if (!atomic_compare_exchange_strong(&sites[at].key, &none, key)) {
            if (none == key)
                return (uint32_t)at + 1;
            continue;
        }
        sites[at].line = line;
        if (frame_file(&place, sites[at].file, sizeof sites[at].file) &&
            frame_name(&place, sites[at].name, sizeof sites[at].name))
            atomic_store_explicit(&sites[at].known, true, memory_order_release);
        return (uint32_t)at + 1;
    }
    return 0;
}

/* --- The table ---------------------------------------------------------------------------------------- */

static size_t bucket_of(uintptr_t address)
{
    return (size_t)(mix(address >> 4, 0) >> 20) % BUCKETS;
}

static void forget_address(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    Bucket *bucket = &table[bucket_of(address)];
    for (size_t i = 0; i < PLACES; i++) {
        uintptr_t expected = address;
        if (atomic_load_explicit(&bucket->places[i], memory_order_relaxed) == address &&
            atomic_compare_exchange_strong(&bucket->places[i], &expected, 0))
            return;
    }
}

static void sample_keep(const void *pointer, size_t size)
{
    uintptr_t address = (uintptr_t)pointer;
    size_t at = bucket_of(address);
    for (size_t i = 0; i < PLACES; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&table[at].places[i], &none, BUSY))
            continue;
        atomic_store_explicit(&samples[at][i].site, site_now(), memory_order_relaxed);
        atomic_store_explicit(&samples[at][i].bytes, bytes_stood_for(size), memory_order_relaxed);
        atomic_store_explicit(&table[at].places[i], address, memory_order_release);
        return;
    }
}

static bool is_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

static void allocated(const void *pointer, size_t size)
{
    if (!pointer || !is_on() || inside)
        return;
    inside = true;
    int saved = errno;
    forget_address(pointer);
    if (seed == 0)
        distance = distance_draw();
    distance -= (double)size;
    if (distance <= 0) {
        distance = distance_draw();
        atomic_fetch_add_explicit(&drawn, 1, memory_order_relaxed);
        sample_keep(pointer, size);
    }
    errno = saved;
    inside = false;
}

static void freed(const void *pointer)
{
    if (pointer && is_on())
        forget_address(pointer);
}

/* --- The calls ---------------------------------------------------------------------------------------- */

enum { MALLOC, CALLOC, REALLOC, FREE, POSIX_MEMALIGN, ALIGNED_ALLOC, MEMALIGN, HOOKS };
static NativeHook hooks[HOOKS];
#define REAL_CALL(which, type, parameters) ((type(*) parameters)hooks[which].real)

static void *hook_malloc(size_t size)
{
    void *made = REAL_CALL(MALLOC, void *, (size_t))(size);
    allocated(made, size);
    return made;
}

static void *hook_calloc(size_t n, size_t size)
{
    void *made = REAL_CALL(CALLOC, void *, (size_t, size_t))(n, size);
    allocated(made, n * size); /* it is NULL if that is too much */
    return made;
}

/* The address is forgotten first: afterwards another thread may have it. */
static void *hook_realloc(void *pointer, size_t size)
{
    freed(pointer);
    void *made = REAL_CALL(REALLOC, void *, (void *, size_t))(pointer, size);
    allocated(made, size);
    return made;
}

static void hook_free(void *pointer)
{
    freed(pointer);
    REAL_CALL(FREE, void, (void *))(pointer);
}

static int hook_posix_memalign(void **ret, size_t alignment, size_t size)
{
    int error = REAL_CALL(POSIX_MEMALIGN, int, (void **, size_t, size_t))(ret, alignment, size);
    if (error == 0)
        allocated(*ret, size);
    return error;
}

static void *hook_aligned_alloc(size_t alignment, size_t size)
{
    void *made = REAL_CALL(ALIGNED_ALLOC, void *, (size_t, size_t))(alignment, size);
    allocated(made, size);
    return made;
}

static void *hook_memalign(size_t alignment, size_t size)
{
    void *made = REAL_CALL(MEMALIGN, void *, (size_t, size_t))(alignment, size);
    allocated(made, size);
    return made;
}

static NativeHook hooks[HOOKS] = {
    [MALLOC] = {"malloc", hook_malloc, .allocates = true},
    [CALLOC] = {"calloc", hook_calloc, .allocates = true},
    [REALLOC] = {"realloc", hook_realloc},
    [FREE] = {"free", hook_free},
    [POSIX_MEMALIGN] = {"posix_memalign", hook_posix_memalign, .allocates = true},
    [ALIGNED_ALLOC] = {"aligned_alloc", hook_aligned_alloc, .allocates = true},
    [MEMALIGN] = {"memalign", hook_memalign, .allocates = true},
};

static bool is_of(const NativeFile *file, const void *address)
{
    return (uintptr_t)address >= file->low && (uintptr_t)address < file->high;
}

/* Address space that is only set aside takes no memory. */
void native_mapped(const void *address, size_t size, int protection, int flags, const void *caller)
{
    bool memory = address != MAP_FAILED && flags & MAP_ANONYMOUS && flags & MAP_PRIVATE &&
                  !(flags & MAP_NORESERVE) && protection & PROT_WRITE;
    if (is_on() && memory && !is_of(&files.python, caller) && !is_of(&files.allocator, caller))
        allocated(address, size);
}

void native_unmapped(const void *address)
{
    freed(address);
}

/* --- A window ----------------------------------------------------------------------------------------- */

typedef struct SiteSum {
    double bytes;
    size_t n;
} SiteSum;

/* By the sample's number of its site. Under the interpreter's lock. */
static SiteSum sums[SITES + 1];
static double middle[SITES + 1]; /* bytes */

/* What is allocated now. */
static void sums_make(void)
{
    memset(sums, 0, sizeof sums);
    for (size_t at = 0; at < BUCKETS; at++)
        for (size_t i = 0; i < PLACES; i++) {
            if (atomic_load_explicit(&table[at].places[i], memory_order_acquire) <= BUSY)
                continue;
            uint32_t site = atomic_load_explicit(&samples[at][i].site, memory_order_relaxed);
            SiteSum *sum = &sums[site <= SITES ? site : 0];
            sum->bytes += (double)atomic_load_explicit(&samples[at][i].bytes, memory_order_relaxed);
            sum->n++;
        }
}

void native_forget(void)
{
    atomic_store(&on, false);
}

bool native_begin(const PythonExpected *expected, size_t n)
{
    for (size_t i = 0; i < HOOKS; i++)
        if (!hooks[i].real)
            hooks[i].real = native_function_find(hooks[i].name);
    files.python.address = (void *)Py_GetVersion;
    files.allocator.address = hooks[MALLOC].real;
    if (is_on() || !frames_check(expected, n) || !hooks[MALLOC].real || !hooks[FREE].real ||
        !hooks[REALLOC].real)
        return false;
    memset(table, 0, sizeof table);
    memset(middle, 0, sizeof middle);
    for (size_t i = 0; i < SITES; i++) {
        atomic_store(&sites[i].key, 0);
        atomic_store(&sites[i].known, false);
    }
    atomic_store(&drawn, 0);
    atomic_store(&on, true);
    if (native_hooks_exchange(hooks, HOOKS, false, &files) > 0)
        return true;
    native_forget();
    (void)native_hooks_exchange(hooks, HOOKS, true, &files);
    return false;
}

void native_middle(void)
{
    sums_make();
    for (size_t i = 0; i <= SITES; i++)
        middle[i] = sums[i].bytes;
}

static size_t lines_write(char *text, size_t size)
{
    size_t used = 0;
    for (size_t named = 0; named < NAMED; named++) {
        size_t most = 0;
        for (size_t i = 1; i <= SITES; i++)
            most = sums[i].bytes > sums[most].bytes ? i : most;
        if (sums[most].n == 0)
            break;
        const NativeSite *site = most > 0 && atomic_load(&sites[most - 1].known) ? &sites[most - 1] : NULL;
        int n = snprintf(text + used, size - used, "%d\t%.0f\t%.0f\t%zu\t%s\t%s\n", site ? site->line : 0,
                         sums[most].bytes, sums[most].bytes - middle[most], sums[most].n,
                         site ? site->file : "", site ? site->name : "");
        if (n < 0 || (size_t)n >= size - used)
            break;
        used += (size_t)n;
        sums[most] = (SiteSum){0};
    }
    return used;
}

size_t native_end(char *text, size_t size)
{
    if (!is_on())
        return 0;
    atomic_store(&on, false);
    (void)native_hooks_exchange(hooks, HOOKS, true, &files);
    sums_make();
    return lines_write(text, size);
}
