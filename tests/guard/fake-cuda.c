/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake-cuda.h"

enum {
    SUCCESS,
    INVALID_VALUE,
    NOT_READY = 600,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713,
    UNSUPPORTED = 900
};
enum { DEVICES = 2, PUSHED_MAX = 4, STREAMS_MAX = 64, RANGES_MAX = 1024, MODE_RELAXED = 2, SPECIAL_MAX = 2 };

#define EXPORT __attribute__((visibility("default")))

typedef struct Event {
    atomic_int pending;
    int device;
} Event;

typedef struct Task {
    void *target;
    const void *source;
    size_t target_pitch, source_pitch, width, height;
    void *staged; /* what the source was, of memory that is not pinned */
    Event *event;
    struct Task *next;
} Task;

typedef struct Stream {
    unsigned long long id;
    int device;
    bool made, destroyed, capturing;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Task *first, *last;
    size_t n_tasks;
} Stream;

static Stream streams[STREAMS_MAX]; /* the first of each device stands for its special ones */
static unsigned long long ids;
static struct {
    char *address;
    size_t size;
} ranges[RANGES_MAX];
static size_t n_ranges, n_registrations;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint delay_msec;
static atomic_int copies_fail, queries_fail, register_fails;
static atomic_bool no_context, standing;
static atomic_size_t offences;
static atomic_int captures;
static pid_t owner;
static __thread int mode; /* of capture: 0 is global */
static __thread bool locked;
static char contexts[DEVICES];
static __thread int device; /* whose context this thread has */
static __thread int pushed[PUSHED_MAX];
static __thread size_t n_pushed;

__attribute__((constructor)) static void start(void)
{
    owner = getpid();
}

static void offend(bool wrong)
{
    if (wrong)
        atomic_fetch_add(&offences, 1);
}

static void called(void)
{
    offend(getpid() != owner || locked);
}

/* A call that spoils every capture. */
static void called_unsafely(void)
{
    called();
    offend(atomic_load(&captures) > 0 && mode != MODE_RELAXED);
}

/* What the driver maps while it has its locks must not lead back into it. */
static void map_inside(void)
{
    enum { BYTES = 1 << 20 };
    int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
    locked = true;
    if (fd >= 0 && ftruncate(fd, BYTES) == 0)
        munmap(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), BYTES);
    locked = false;
    close(fd);
}

static void copy_rows(const Task *task)
{
    const char *source = task->staged ? task->staged : task->source;
    for (size_t row = 0; row < task->height; row++)
        memcpy((char *)task->target + row * task->target_pitch, source + row * task->source_pitch,
               task->width);
}

static void *stream_run(void *context)
{
    Stream *stream = context;
    for (;;) {
        pthread_mutex_lock(&stream->lock);
        while (!stream->first)
            pthread_cond_wait(&stream->changed, &stream->lock);
        Task *task = stream->first;
        pthread_mutex_unlock(&stream->lock);
        if (task->event)
            atomic_fetch_sub(&task->event->pending, 1);
        else {
            unsigned msec = atomic_load(&delay_msec);
            struct timespec delay = {msec / 1000, (long)(msec % 1000) * 1000000};
            nanosleep(&delay, NULL);
            while (atomic_load(&standing))
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            copy_rows(task);
        }
        pthread_mutex_lock(&stream->lock);
        stream->first = task->next;
        stream->n_tasks--;
        pthread_cond_broadcast(&stream->changed);
        pthread_mutex_unlock(&stream->lock);
        free(task->staged);
        free(task);
    }
    return NULL;
}

static Stream *stream_start(Stream *stream)
{
    if (!stream->made) {
        stream->made = true;
        pthread_mutex_init(&stream->lock, NULL);
        pthread_cond_init(&stream->changed, NULL);
        pthread_create(&stream->thread, NULL, stream_run, stream);
        pthread_detach(stream->thread);
    }
    stream->id = ++ids;
    stream->device = device;
    stream->destroyed = false;
    return stream;
}

static Stream *stream_at(void *handle)
{
    if ((uintptr_t)handle > SPECIAL_MAX)
        return handle;
    pthread_mutex_lock(&table);
    if (!streams[device].made)
        stream_start(&streams[device]);
    pthread_mutex_unlock(&table);
    return &streams[device];
}

static void stream_add(Stream *stream, Task task)
{
    Task *own = malloc(sizeof *own);
    *own = task;
    own->next = NULL;
    pthread_mutex_lock(&stream->lock);
    if (stream->n_tasks++ == 0)
        stream->first = own;
    else
        stream->last->next = own;
    stream->last = own;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

EXPORT void *fake_stream_make(void)
{
    pthread_mutex_lock(&table);
    Stream *found = NULL;
    for (size_t i = DEVICES; i < STREAMS_MAX && !found; i++)
        if (!streams[i].made || streams[i].destroyed)
            found = stream_start(&streams[i]);
    pthread_mutex_unlock(&table);
    return found;
}

EXPORT void fake_stream_destroy(void *stream)
{
    ((Stream *)stream)->destroyed = true;
}

EXPORT void fake_stream_wait(void *handle)
{
    Stream *stream = stream_at(handle);
    pthread_mutex_lock(&stream->lock);
    while (stream->n_tasks > 0)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

EXPORT void fake_capture(void *stream, bool on)
{
    stream_at(stream)->capturing = on;
    atomic_fetch_add(&captures, on ? 1 : -1);
}

EXPORT void fake_delay(unsigned msec)
{
    atomic_store(&delay_msec, msec);
}

EXPORT void fake_stand(bool stands)
{
    atomic_store(&standing, stands);
}

EXPORT void fake_fail_copies(int error)
{
    atomic_store(&copies_fail, error);
}

EXPORT void fake_fail_queries(int error)
{
    atomic_store(&queries_fail, error);
}

EXPORT void fake_fail_register(int error)
{
    atomic_store(&register_fails, error);
}

EXPORT void fake_context(bool exists)
{
    atomic_store(&no_context, !exists);
}

EXPORT size_t fake_registered(void)
{
    return n_ranges;
}

EXPORT void fake_device(int number)
{
    device = number;
}

EXPORT size_t fake_registrations(void)
{
    return n_registrations;
}

EXPORT size_t fake_offences(void)
{
    return atomic_load(&offences);
}

static bool is_registered(const void *address)
{
    bool found = false;
    pthread_mutex_lock(&table);
    for (size_t i = 0; i < n_ranges && !found; i++)
        found = ranges[i].address <= (const char *)address &&
                (const char *)address < ranges[i].address + ranges[i].size;
    pthread_mutex_unlock(&table);
    return found;
}

/* --- The driver --------------------------------------------------------------------------------------- */

int fake_copy(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
              size_t height, void *stream);

EXPORT int cuCtxGetCurrent(void **ret)
{
    called();
    *ret = atomic_load(&no_context) ? NULL : &contexts[device];
    return SUCCESS;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    called();
    pushed[n_pushed++] = device;
    device = (int)((char *)context - contexts);
    offend(device < 0 || device >= DEVICES || n_pushed == PUSHED_MAX);
    return SUCCESS;
}

EXPORT int cuCtxPopCurrent_v2(void **ret)
{
    *ret = &contexts[device];
    device = pushed[--n_pushed];
    return SUCCESS;
}

EXPORT int cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
    called_unsafely();
    if (atomic_load(&register_fails))
        return atomic_load(&register_fails);
    if (is_registered(address))
        return ALREADY_REGISTERED;
    offend(flags != 1);
    pthread_mutex_lock(&table);
    ranges[n_ranges].address = address;
    ranges[n_ranges++].size = size;
    n_registrations++;
    pthread_mutex_unlock(&table);
    return SUCCESS;
}

EXPORT int cuMemHostUnregister(void *address)
{
    called_unsafely();
    int r = NOT_REGISTERED;
    unsigned char there[1];
    offend(mincore(address, 1, there) != 0); /* it was unmapped */
    pthread_mutex_lock(&table);
    for (size_t i = 0; i < n_ranges && r != SUCCESS; i++)
        if (ranges[i].address == address) {
            ranges[i] = ranges[--n_ranges];
            r = SUCCESS;
        }
    pthread_mutex_unlock(&table);
    offend(r != SUCCESS);
    return r;
}

EXPORT int cuEventCreate(void **ret, unsigned flags)
{
    (void)flags;
    called_unsafely();
    Event *event = calloc(1, sizeof *event);
    event->device = device;
    *ret = event;
    return SUCCESS;
}

EXPORT int cuEventRecord(void *event, void *stream)
{
    called();
    Stream *on = stream_at(stream);
    offend(on->capturing || on->device != ((Event *)event)->device);
    atomic_fetch_add(&((Event *)event)->pending, 1);
    stream_add(on, (Task){.event = event});
    map_inside();
    return SUCCESS;
}

EXPORT int cuEventQuery(void *event)
{
    called_unsafely();
    if (atomic_load(&queries_fail))
        return atomic_load(&queries_fail);
    return atomic_load(&((Event *)event)->pending) > 0 ? NOT_READY : SUCCESS;
}

EXPORT int cuStreamGetCtx(void *stream, void **ret)
{
    called();
    *ret = &contexts[stream_at(stream)->device];
    return SUCCESS;
}

EXPORT int cuStreamIsCapturing(void *stream, int *ret)
{
    called();
    *ret = stream_at(stream)->capturing;
    return SUCCESS;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    called();
    fake_stream_wait(stream);
    return SUCCESS;
}

EXPORT int cuStreamGetId(void *stream, unsigned long long *ret)
{
    called();
    *ret = stream_at(stream)->id;
    return SUCCESS;
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *exchanged)
{
    int before = mode;
    mode = *exchanged;
    *exchanged = before;
    return SUCCESS;
}

/* The driver refuses a copy of which it knows the beginning and not the rest. */
static bool is_torn(const void *address, size_t bytes)
{
    bool torn = false;
    const char *start = address;
    pthread_mutex_lock(&table);
    for (size_t i = 0; i < n_ranges && !torn; i++)
        torn = ranges[i].address <= start && start < ranges[i].address + ranges[i].size &&
               start + bytes > ranges[i].address + ranges[i].size;
    pthread_mutex_unlock(&table);
    return torn;
}

/* For the runtime. What is captured does not run. */
EXPORT int fake_copy(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                     size_t height, void *stream)
{
    called();
    Stream *on = stream_at(stream);
    if (atomic_load(&copies_fail))
        return atomic_load(&copies_fail);
    if (is_torn(source, (height - 1) * source_pitch + width) ||
        is_torn(target, (height - 1) * target_pitch + width))
        return INVALID_VALUE;
    if (on->capturing)
        return SUCCESS;
    Task task = {.target = target,
                 .source = source,
                 .target_pitch = target_pitch,
                 .source_pitch = source_pitch,
                 .width = width,
                 .height = height};
    if (!is_registered(source)) {
        size_t bytes = (height - 1) * source_pitch + width;
        task.staged = malloc(bytes);
        memcpy(task.staged, source, bytes);
    }
    stream_add(on, task);
    return SUCCESS;
}

EXPORT bool fake_is_registered(const void *address);
EXPORT bool fake_is_registered(const void *address)
{
    return is_registered(address);
}
