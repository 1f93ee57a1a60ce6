/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cuda.h"
#include "guard.h"

/*
 * To the GPU without a copy. The thread of a DataLoader with pin_memory=True asks for each tensor whether it
 * is pinned, and copies it into pinned memory if it is not. Here the view that holds the tensor is registered
 * with CUDA at that question, once, and the answer is yes.
 *
 * What must not happen
 *
 * A copy to the GPU continues to read after the call. PyTorch drops the tensor, and its worker would fill the
 * segment again: so the release of a view (its hold, guard.h) waits until every copy out of it, or into it,
 * is done. All such copies pass pins_copy_begin and pins_copy_end: cuda_is_ours has proven that.
 *
 * - Before the copy is started, its pin is busy (`calls`), and after it an event is recorded on its stream.
 *   So at every moment a copy is either not started, or its pin is busy, or its event exists.
 *
 * - Events are queried on the guard's own calls, and by the loader's thread while it sleeps in poll(), where
 *   it may be waiting for the very worker that needs the segment; no thread blocks on one. The answer to a
 *   query made without the lock counts only if no copy has begun since (`change`).
 *
 * - What cannot be known counts as never done: a copy that failed, or that is captured into a graph and may
 *   run at any time, or for which there is no event. Its segment is never issued again. After LOST_MAX of
 *   those, and when CUDA itself reports an error, nothing is granted any more.
 *
 * What must not change for the program
 *
 * - pin_memory() returns a copy: writing to it changes nothing else. So a tensor is granted as pinned only if
 *   no other process can have it: its producer has unmapped it and has sent it once (`sole`, views.c), only
 *   the loader's own thread asks, and only the first tensor of a storage gets the grant; others of the same
 *   storage are copied as usual.
 *
 * - A copy from memory that is not pinned is done with the source when the call returns. So it is here, when
 *   a view that was registered for an earlier tensor holds one that was not granted: we wait for the copy.
 *
 * Where CUDA may be touched
 *
 * - Only in the process that was started by exec: a forked one cannot use its parent's CUDA, and in it all
 *   this is forgotten. There the parent's pins are ordinary views, and those that only waited are released:
 *   the parent has its own hold.
 *
 * - Only in a context that the thread already has, and never while the lock is held. Each use is in the
 *   relaxed capture mode, as in PyTorch's own allocator, so that we do not spoil a graph that another thread
 *   captures.
 *
 * The end of the process: nothing is unregistered, and we wait for nothing. The kernel drops the holds while
 * the GPU may still read: into memory of a context that is being torn down and that no process will look at.
 * The pages themselves stay until the driver has released them.
 *
 * Memory: only memory of segments is registered, which the budget counts; at most PINS_MAX views and half of
 * the machine's memory. NVIDIA's driver does not count it against RLIMIT_MEMLOCK (measured); a driver that
 * did would refuse, and the tensor would be copied. A segment is registered when it comes back for the first
 * time, so that a loader too slow to recycle any registers none.
 *
 * What was unused for twice KEEP_MSEC is unregistered and unmapped. The driver then waits until the GPU has
 * nothing left to do, and lets no other thread start anything meanwhile (measured): as long as a
 * torch.cuda.synchronize() takes. So it is done when a loader has shrunk, and not for segments in rotation;
 * by the loader's own thread, at its question, which it asks without the interpreter's lock; and by any
 * thread that copies when no loader has asked for LONG_MSEC.
 */
enum {
    PINS_MAX = 256,
    COPIES_MAX = 16,    /* streams at once, per view */
    LOST_MAX = 16,      /* segments that are never issued again */
    WAITING_MAX = 64,   /* views that wait for their copies */
    FAILURES_MAX = 4,   /* failed registrations in a row */
    QUESTIONS_MAX = 64, /* events per poll */
    LONG_MSEC = 30000,
};

typedef struct Copy {
    void *context;
    void *event;
    uint64_t stream; /* its id, which is never reused; 0: not known */
} Copy;

struct Pin {
    _Atomic(char *) address; /* NULL: the entry is not in use. Written with the lock, read without */
    _Atomic size_t bytes;
    void *context; /* in which it was registered */
    bool registered;
    bool granted; /* the program was told that the tensor that uses it now is pinned */
    bool waiting; /* released by the program, and kept for its copies */
    bool leaving; /* will be unregistered, and then unmapped */
    bool lost;    /* never released */
    unsigned calls;
    uint64_t change;
    size_t n_copies;
    Copy copies[COPIES_MAX];
};

static Pin pins[PINS_MAX];
static atomic_uint n_pins; /* entries that were ever taken */
static uint64_t pinned_bytes;
static unsigned n_lost, n_failures;
static atomic_uint n_waiting;  /* pins that are not lost */
static atomic_uint n_open;     /* pins with copies, or that wait: worth a poll */
static atomic_uint n_leaving;  /* pins */
static atomic_bool wanted;     /* a loader's thread has asked */
static _Atomic uint64_t asked; /* when one asked last; msec */
static atomic_bool closed;     /* nothing is granted any more */
static atomic_bool broken;     /* CUDA has reported an error: it is not called any more */
static atomic_bool blind;      /* a copy was not recorded: nothing is released any more */

static __thread bool asks_here __attribute__((tls_model("initial-exec"))); /* this is a loader's thread */

/* Set once, by the constructor. */
static pid_t started;
static bool is_off;

static struct {
    void *context;
    void *event;
} spare_events[PINS_MAX * COPIES_MAX];
static size_t n_spare_events;

void pins_start(void)
{
    const char *wish = getenv(PROTOCOL_PIN);
    is_off = guard_is_switched_off() || (wish && strcmp(wish, "off") == 0);
    started = getpid();
}

static bool may_be_here(void)
{
    return !is_off && started == getpid();
}

bool pins_wanted(void)
{
    return atomic_load_explicit(&wanted, memory_order_relaxed) &&
           !atomic_load_explicit(&closed, memory_order_relaxed);
}

static void close_down(atomic_bool *why)
{
    atomic_store_explicit(why, true, memory_order_relaxed);
    atomic_store_explicit(&closed, true, memory_order_relaxed);
}

bool pins_can_be(void)
{
    return !is_off && cuda_is_near();
}

/* --- CUDA, in the mode that disturbs no other thread -------------------------------------------------- */

static int relaxed_begin(const Cuda *cuda)
{
    int mode = CUDA_CAPTURE_RELAXED;
    return cuda->capture_mode(&mode) == CUDA_SUCCESS ? mode : -1;
}

static void relaxed_end(const Cuda *cuda, int mode)
{
    if (mode >= 0)
        (void)cuda->capture_mode(&mode);
}

/* --- The table ---------------------------------------------------------------------------------------- */

static Pin *pin_add(char *address, size_t bytes)
{
    static uint64_t most_bytes;
    struct sysinfo machine;
    if (most_bytes == 0 && sysinfo(&machine) == 0)
        most_bytes = (uint64_t)machine.totalram * machine.mem_unit / 2;
    if (pinned_bytes + bytes > most_bytes)
        return NULL;
    unsigned n = atomic_load_explicit(&n_pins, memory_order_relaxed);
    unsigned i = 0;
    while (i < n && pins[i].address)
        i++;
    if (i == PINS_MAX)
        return NULL;
    if (i == n)
        atomic_store_explicit(&n_pins, n + 1, memory_order_relaxed);
    pins[i].change++;
    atomic_store_explicit(&pins[i].bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&pins[i].address, address, memory_order_relaxed);
    pinned_bytes += bytes;
    return &pins[i];
}

static void pin_remove(Pin *pin)
{
    uint64_t change = pin->change;
    pinned_bytes -= pin->bytes;
    pin->registered = pin->granted = pin->leaving = pin->lost = false;
    pin->context = NULL;
    pin->change = change + 1;
    atomic_store_explicit(&pin->address, NULL, memory_order_relaxed);
}

static Pin *pin_at(const void *address, size_t bytes)
{
    size_t n = atomic_load_explicit(&n_pins, memory_order_relaxed);
    uintptr_t start = (uintptr_t)address;
    uintptr_t end = 0;
    if (__builtin_add_overflow(start, bytes ? bytes : 1, &end))
        end = UINTPTR_MAX;
    for (size_t i = 0; i < n; i++) {
        uintptr_t pinned = (uintptr_t)atomic_load_explicit(&pins[i].address, memory_order_relaxed);
        if (pinned != 0 && start < pinned + atomic_load_explicit(&pins[i].bytes, memory_order_relaxed) &&
            pinned < end)
            return &pins[i];
    }
    return NULL;
}

static bool pin_is_open(const Pin *pin)
{
    return pin->calls > 0 || pin->n_copies > 0 || pin->lost ||
           atomic_load_explicit(&blind, memory_order_relaxed);
}

static void pin_lose(Pin *pin)
{
    if (pin->lost)
        return;
    if (++n_lost >= LOST_MAX)
        close_down(&closed);
    pin->lost = true;
    if (pin->waiting)
        atomic_fetch_sub_explicit(&n_waiting, 1, memory_order_relaxed);
}

/* --- What views.c calls, with the lock ---------------------------------------------------------------- */

bool pin_release(Pin *pin)
{
    pin->granted = false;
    if (!pin_is_open(pin))
        return true;
    pin->waiting = true;
    if (!pin->lost)
        atomic_fetch_add_explicit(&n_waiting, 1, memory_order_relaxed);
    return false;
}

void pin_use_again(Pin *pin)
{
    if (pin->waiting && !pin->lost)
        atomic_fetch_sub_explicit(&n_waiting, 1, memory_order_relaxed);
    pin->waiting = false;
}

bool pin_leave(Pin *pin)
{
    if (pin_is_open(pin) || !pin->registered)
        return false;
    if (!pin->leaving)
        atomic_fetch_add_explicit(&n_leaving, 1, memory_order_relaxed);
    pin->leaving = true;
    return true;
}

bool pin_is_shut(const Pin *pin)
{
    return pin->leaving || (pin->lost && !pin->waiting);
}

bool pin_fits(const Pin *pin, size_t bytes)
{
    return bytes <= pin->bytes;
}

void pin_orphan(Pin *pin)
{
    if (pin->leaving)
        atomic_fetch_sub_explicit(&n_leaving, 1, memory_order_relaxed);
    pin->leaving = false;
    pin_lose(pin);
}

void pins_forget(void)
{
    for (size_t i = 0; i < n_pins; i++)
        pins[i] = (Pin){.address = NULL};
    pinned_bytes = 0;
    n_spare_events = n_lost = n_failures = 0;
    atomic_store_explicit(&n_waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&n_pins, 0, memory_order_relaxed);
    atomic_store_explicit(&n_open, 0, memory_order_relaxed);
    atomic_store_explicit(&n_leaving, 0, memory_order_relaxed);
    atomic_store_explicit(&wanted, false, memory_order_relaxed);
}

/* --- Unregister --------------------------------------------------------------------------------------- */

static Pin *next_leaving(void)
{
    for (size_t i = 0; i < n_pins; i++)
        if (pins[i].leaving && pins[i].registered)
            return &pins[i];
    return NULL;
}

/* A leaving view is in use nowhere, and view_use does not take it. */
static bool leave_one(const Cuda *cuda)
{
    if (!guard_enter())
        return false;
    Pin *pin = next_leaving();
    if (pin)
        pin->registered = false; /* so that no other thread takes it */
    guard_leave(false);
    if (!pin)
        return false;
    void *popped = NULL;
    int mode = relaxed_begin(cuda);
    bool pushed = mode >= 0 && cuda->context_push(pin->context) == CUDA_SUCCESS;
    bool done = pushed && cuda->host_unregister(pin->address) == CUDA_SUCCESS;
    if (pushed)
        (void)cuda->context_pop(&popped);
    relaxed_end(cuda, mode);
    if (!guard_enter())
        return false;
    bool orphaned = !pin->leaving; /* the program has mapped over it meanwhile */
    if (!orphaned)
        atomic_fetch_sub_explicit(&n_leaving, 1, memory_order_relaxed);
    pin->leaving = false;
    if (done) {
        char *address = pin->address;
        pin_remove(pin);
        if (!orphaned)
            view_drop_at(address);
    } else { /* it stays mapped, and may still be registered */
        close_down(&broken);
        pin_lose(pin);
    }
    guard_leave(false);
    return done;
}

static void tidy(void)
{
    const Cuda *cuda = cuda_driver();
    while (atomic_load_explicit(&n_leaving, memory_order_relaxed) > 0 && cuda && may_be_here() &&
           !atomic_load_explicit(&broken, memory_order_relaxed) && leave_one(cuda))
        ;
}

/* --- "Is it pinned?" ---------------------------------------------------------------------------------- */

typedef enum Answer {
    ANSWER_REAL,     /* what CUDA says is right */
    ANSWER_NO,       /* whatever CUDA says, because we registered it */
    ANSWER_REGISTER, /* register it; then the answer is yes */
} Answer;

/* PyTorch names it so since 2.5; in older versions the thread cannot be recognised, and nothing is pinned. */
static bool is_loader_thread(void)
{
    char name[16] = "";
    return prctl(PR_GET_NAME, name) == 0 && strcmp(name, "pt_data_pin") == 0;
}

static void grant(Pin *pin, size_t used)
{
    pin->granted = true;
    atomic_fetch_add_explicit(&guard_counters()->pinned_bytes, used, memory_order_relaxed);
}

/* A tensor that PyTorch copies is released at once, so PyTorch copies it if a process needs the room. */
static bool too_much_waits(void)
{
    unsigned n = atomic_load_explicit(&n_waiting, memory_order_relaxed);
    return n >= WAITING_MAX || (n > 0 && budget_is_wanted());
}

static Answer answer_now(const void *address, bool pinned, bool loader, bool ours, Pin **ret)
{
    ViewUse use;
    if (!view_look(address, &use))
        return ANSWER_REAL;
    Pin *pin = use.pin;
    if (!pin && pinned) /* by the program; or a view was lost here, and CUDA has registered other pages */
        return pin_at(address, 1) ? ANSWER_NO : ANSWER_REAL;
    if (pin && pin->granted)
        return loader ? ANSWER_NO : ANSWER_REAL;
    if (loader)
        atomic_store_explicit(&wanted, true, memory_order_relaxed);
    if (!loader || !ours || !use.sole || !pins_wanted() || too_much_waits())
        return ANSWER_NO;
    if (pin) {
        if (!pin->registered || pin_is_open(pin))
            return ANSWER_NO;
        grant(pin, use.used);
        return ANSWER_REAL;
    }
    pin = n_failures < FAILURES_MAX ? pin_add(use.address, use.used) : NULL;
    if (!pin)
        return ANSWER_NO;
    view_set_pin(use.address, pin);
    *ret = pin;
    return ANSWER_REGISTER;
}

/* The caller has the tensor while it asks, so its view stays. Only a thread that maps over it can take it
 * away, and then the pin is lost. */
static bool pin_register(Pin *pin)
{
    const Cuda *cuda = cuda_driver();
    void *context = NULL;
    int mode = relaxed_begin(cuda);
    /* The thread of a new loader has no context until PyTorch copies something for it: that is not a failure.
     */
    bool can = mode >= 0 && cuda->context_now(&context) == CUDA_SUCCESS && context;
    bool done = can && cuda->host_register(pin->address, pin->bytes, CUDA_REGISTER_PORTABLE) == CUDA_SUCCESS;
    relaxed_end(cuda, mode);
    if (!guard_enter()) /* cannot happen: no thread forks in here */
        return done;
    if (done) {
        n_failures = 0;
        pin->registered = true;
        pin->context = context;
        if (!pin->lost)
            grant(pin, pin->bytes);
    } else {
        n_failures += can;
        if (!pin->lost)
            view_set_pin(pin->address, NULL);
        else
            n_lost--;
        pin_remove(pin);
    }
    guard_leave(false);
    return done;
}

/* cudaPointerAttributes since CUDA 11. */
typedef struct Attributes {
    int type;
    int device;
    void *device_address;
    void *host_address;
} Attributes;

enum { TYPE_UNREGISTERED = 0, TYPE_HOST = 1, DEVICE_NONE = -2 };

int pins_attributes(void *ret, const void *address, const void *caller)
{
    int (*real)(void *, const void *);
    void *found = cuda_real(CUDA_ATTRIBUTES, caller);
    memcpy(&real, &found, sizeof real);
    if (!real)
        return CUDA_RUNTIME_MISSING;
    int r = real(ret, address); /* it may also give the thread its context */
    bool near = view_overlaps(address, 1);
    bool leaving = atomic_load_explicit(&n_leaving, memory_order_relaxed) > 0;
    if (r != CUDA_SUCCESS || !(near || leaving) || !may_be_here())
        return r;
    bool loader = is_loader_thread();
    if (loader) {
        asks_here = true;
        atomic_store_explicit(&asked, now_msec(), memory_order_relaxed);
        tidy();
    }
    bool ours = loader && cuda_is_ours(caller);
    pins_poll();
    if (!near || !guard_enter())
        return r;
    Pin *pin = NULL;
    Attributes *attributes = ret;
    Answer answer = answer_now(address, attributes->type == TYPE_HOST, loader, ours, &pin);
    guard_leave(false);
    if (answer == ANSWER_REGISTER && pin_register(pin))
        return real(ret, address);
    if (answer == ANSWER_NO && attributes->type == TYPE_HOST)
        *attributes = (Attributes){TYPE_UNREGISTERED, DEVICE_NONE, NULL, (void *)address};
    return r;
}

/* --- Copies ------------------------------------------------------------------------------------------- */

/* A trainer whose loader is gone makes no more tensors, but copies now and then: these copies are the
 * occasion to release what is still registered. */
static void look_after(void)
{
    uint64_t now = now_msec();
    uint64_t last = atomic_load_explicit(&asked, memory_order_relaxed);
    if (now - last < LONG_MSEC ||
        !atomic_compare_exchange_strong_explicit(&asked, &last, now, memory_order_relaxed,
                                                 memory_order_relaxed) ||
        !guard_enter())
        return;
    view_forget_unused();
    guard_leave(false);
    tidy();
}

/*
 * Without the lock it finds the pin of a tensor that the caller has: the pin was registered before the caller
 * got the answer, and it stays while the caller has the tensor. For other entries any value is right.
 */
void pins_copy_begin(PinsCopy *copy, const void *target, size_t target_bytes, const void *source,
                     size_t source_bytes)
{
    *copy = (PinsCopy){0};
    if (atomic_load_explicit(&n_pins, memory_order_relaxed) == 0 || !may_be_here())
        return;
    look_after();
    Pin *touched[2] = {pin_at(source, source_bytes), pin_at(target, target_bytes)};
    if (!touched[0] && !touched[1])
        return;
    if (!guard_enter()) { /* a signal handler that copies while it interrupts us */
        close_down(&blind);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        Pin *pin = touched[i];
        if (!pin || !pin->registered || (i == 1 && pin == touched[0]))
            continue;
        pin->change++;
        if (pin->calls++ == 0 && pin->n_copies == 0)
            atomic_fetch_add_explicit(&n_open, 1, memory_order_relaxed);
        copy->pins[i] = pin;
        copy->must_wait = copy->must_wait || !pin->granted;
    }
    guard_leave(false);
}

bool pins_copy_is_captured(const PinsCopy *copy, void *stream)
{
    const Cuda *cuda = cuda_driver();
    int capturing = 0;
    return (copy->pins[0] || copy->pins[1]) &&
           (!cuda || cuda->stream_capturing(stream, &capturing) != CUDA_SUCCESS || capturing != 0);
}

static bool context_of(const Cuda *cuda, void *stream, void **ret)
{
    bool special = (uintptr_t)stream <= (uintptr_t)CUDA_STREAM_OF_THREAD;
    return (special ? cuda->context_now(ret) : cuda->stream_context(stream, ret)) == CUDA_SUCCESS && *ret;
}

static void *event_make(const Cuda *cuda, void *context)
{
    void *event = NULL;
    void *popped = NULL;
    if (cuda->context_push(context) != CUDA_SUCCESS)
        return NULL;
    if (cuda->event_create(&event, CUDA_EVENT_NO_TIMING) != CUDA_SUCCESS)
        event = NULL;
    (void)cuda->context_pop(&popped);
    return event;
}

static void *spare_event(void *context)
{
    for (size_t i = 0; i < n_spare_events; i++)
        if (spare_events[i].context == context) {
            void *event = spare_events[i].event;
            spare_events[i] = spare_events[--n_spare_events];
            return event;
        }
    return NULL;
}

static void event_give_back(void *context, void *event)
{
    if (n_spare_events < sizeof spare_events / sizeof *spare_events) {
        spare_events[n_spare_events].context = context;
        spare_events[n_spare_events].event = event;
        n_spare_events++;
    }
}

/* The event for the copies on this stream. It may be recorded again: it then comes after all of them. The
 * handle of a stream may be reused for another stream, its id is not. */
static Copy *copy_on(Pin *pin, void *context, uint64_t stream)
{
    for (size_t i = 0; stream != 0 && i < pin->n_copies; i++)
        if (pin->copies[i].context == context && pin->copies[i].stream == stream)
            return &pin->copies[i];
    return NULL;
}

/* After the real copy: records an event on its stream. False: it is not known when the copy is done. */
static bool pin_record(const Cuda *cuda, Pin *pin, void *stream)
{
    void *context = NULL;
    unsigned long long id = 0;
    if (!context_of(cuda, stream, &context))
        return false;
    if (!cuda->stream_id || cuda->stream_id(stream, &id) != CUDA_SUCCESS)
        id = 0;
    if (!guard_enter())
        return false;
    /* An event must not stand for fewer copies than before: an existing one is left alone until it is done,
     * unless it is on this very stream. */
    Copy *copy = copy_on(pin, context, id);
    void *event = copy ? copy->event : pin->n_copies < COPIES_MAX ? spare_event(context) : NULL;
    bool full = !copy && pin->n_copies >= COPIES_MAX;
    guard_leave(false);
    if (full || (!event && !(event = event_make(cuda, context))))
        return false;
    bool recorded = cuda->event_record(event, stream) == CUDA_SUCCESS;
    if (copy)
        return recorded;
    if (!guard_enter())
        return false;
    bool kept = recorded && pin->n_copies < COPIES_MAX;
    if (kept)
        pin->copies[pin->n_copies++] = (Copy){context, event, id};
    else
        event_give_back(context, event);
    guard_leave(false);
    return kept;
}

static void pin_end_call(Pin *pin, bool known)
{
    pin->change++;
    if (!known)
        pin_lose(pin);
    if (--pin->calls == 0 && pin->n_copies == 0)
        atomic_fetch_sub_explicit(&n_open, 1, memory_order_relaxed);
}

void pins_copy_end(PinsCopy *copy, void *stream, PinsEnd end)
{
    if (!copy->pins[0] && !copy->pins[1])
        return;
    const Cuda *cuda = cuda_driver();
    bool known[2] = {false, false};
    if (end == PINS_STARTED && cuda) {
        int mode = relaxed_begin(cuda);
        for (size_t i = 0; mode >= 0 && i < 2; i++)
            known[i] = copy->pins[i] && pin_record(cuda, copy->pins[i], stream);
        if (mode >= 0 && copy->must_wait)
            (void)cuda->stream_wait(stream);
        relaxed_end(cuda, mode);
    }
    if (!guard_enter()) {
        close_down(&blind);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        if (copy->pins[i])
            pin_end_call(copy->pins[i], known[i]);
    guard_leave(false);
    pins_poll();
}

/* --- Are they done? ----------------------------------------------------------------------------------- */

typedef struct Question {
    Pin *pin;
    uint64_t change;
    void *event;
    bool done;
} Question;

static size_t questions_collect(Question *questions)
{
    static size_t next; /* if there are more than fit into one poll, the others follow in the next */
    size_t n = 0;
    size_t all = atomic_load_explicit(&n_pins, memory_order_relaxed);
    for (size_t k = 0; k < all; k++) {
        Pin *pin = &pins[(next + k) % all];
        if (pin->calls > 0 || pin->n_copies == 0)
            continue;
        if (n + pin->n_copies > QUESTIONS_MAX) {
            next = (next + k) % all;
            break;
        }
        for (size_t i = 0; i < pin->n_copies; i++)
            questions[n++] = (Question){pin, pin->change, pin->copies[i].event, false};
    }
    return n;
}

static void copy_remove(Pin *pin, void *event)
{
    for (size_t i = 0; i < pin->n_copies; i++)
        if (pin->copies[i].event == event) {
            event_give_back(pin->copies[i].context, event);
            pin->copies[i] = pin->copies[--pin->n_copies];
            if (pin->n_copies == 0)
                atomic_fetch_sub_explicit(&n_open, 1, memory_order_relaxed);
            return;
        }
}

static void questions_apply(const Question *questions, size_t n)
{
    bool released = false;
    for (size_t i = 0; i < n; i++) {
        Pin *pin = questions[i].pin;
        if (!questions[i].done || pin->change != questions[i].change)
            continue;
        copy_remove(pin, questions[i].event);
        if (!pin->waiting || pin_is_open(pin))
            continue;
        pin->waiting = false;
        atomic_fetch_sub_explicit(&n_waiting, 1, memory_order_relaxed);
        view_let_go(pin->address);
        released = true;
    }
    if (released)
        budget_tell_release();
}

/* The thread is recognised by its question and not by its name: threads that CUDA starts may inherit the
 * name, and must not call back into CUDA from poll(). */
bool pins_wait(void)
{
    return asks_here && atomic_load_explicit(&n_waiting, memory_order_relaxed) > 0 &&
           !atomic_load_explicit(&broken, memory_order_relaxed) &&
           !atomic_load_explicit(&blind, memory_order_relaxed);
}

void pins_poll(void)
{
    const Cuda *cuda = cuda_driver();
    if (atomic_load_explicit(&n_open, memory_order_relaxed) == 0 || !cuda || !may_be_here() || !guard_enter())
        return;
    Question questions[QUESTIONS_MAX];
    size_t n = atomic_load_explicit(&broken, memory_order_relaxed) ? 0 : questions_collect(questions);
    guard_leave(false);
    if (n == 0)
        return;
    int mode = relaxed_begin(cuda);
    for (size_t i = 0; mode >= 0 && i < n; i++) {
        int r = cuda->event_query(questions[i].event);
        questions[i].done = r == CUDA_SUCCESS;
        /* The context must not be used again: all that waits, waits until the process ends. */
        if (r != CUDA_SUCCESS && r != CUDA_NOT_READY)
            close_down(&broken);
    }
    relaxed_end(cuda, mode);
    if (atomic_load_explicit(&broken, memory_order_relaxed) || !guard_enter())
        return;
    questions_apply(questions, n);
    guard_leave(false);
}

#ifdef GUARD_CHECKS
bool pin_is_at(const Pin *pin, const char *address)
{
    return pin >= pins && pin < pins + n_pins && pin->address == address;
}

bool pin_is_waiting(const Pin *pin)
{
    return pin->waiting;
}

void pins_check(void)
{
    uint64_t bytes = 0;
    unsigned lost = 0;
    unsigned waiting = 0;
    unsigned open = 0;
    unsigned leaving = 0;
    assert(n_pins <= PINS_MAX && n_spare_events <= sizeof spare_events / sizeof *spare_events);
    for (size_t i = 0; i < n_pins; i++) {
        const Pin *pin = &pins[i];
        assert(pin->address
                   ? pin->bytes > 0
                   : !pin->registered && !pin->granted && !pin->waiting && !pin->leaving && !pin->lost);
        assert(!pin->registered || pin->context);
        assert(pin->n_copies <= COPIES_MAX);
        bytes += pin->address ? pin->bytes : 0;
        lost += pin->lost;
        waiting += pin->waiting && !pin->lost;
        open += pin->calls > 0 || pin->n_copies > 0;
        leaving += pin->leaving;
    }
    assert(bytes == pinned_bytes && lost <= n_lost);
    assert(waiting == n_waiting && open == n_open && leaving == n_leaving);
}
#endif
