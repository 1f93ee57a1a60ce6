/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preload library: it backs PyTorch's shared tensors with recycled memfds. It lives in other programs'
 * processes: it may decline, and then the plain libc call is made; it may never be wrong.
 *
 * Terms
 *
 * segment: a memfd made by this library. The process that made it is its producer and keeps it in its pool.
 * When the producer has gone, the supervisor may hand a free segment to another process, which is its
 * producer from then on.
 *
 * description: the kernel's open file description. Descriptors, copies of them (dup, fork, SCM_RIGHTS),
 * descriptors in flight in a socket and mappings made through one all keep the description they came from.
 *
 * handed-out: the description of a segment that PyTorch is given. It carries a shared lock (OFD) on byte 0.
 * The pool's own description of the same segment carries an exclusive lock on another byte: LOCK_POOLED.
 *
 * view: a mapping of a segment that this process keeps for the next tensor, made through a description of its
 * own, so that an unused view does not keep the handed-out one.
 *
 * hold: one page of the handed-out description, mapped PROT_NONE, for as long as the view is in use.
 *
 * free: no process has the handed-out description any more; the kernel has dropped its lock.
 *
 * The invariant
 *
 * While a process can reach a segment's memory through a tensor, that process keeps the handed-out
 * description: by a descriptor, by a plain mapping of it, or by a hold.
 *
 * A segment is issued again only when no lock is left on it, so never while any process can still reach the
 * old contents:
 *
 * - The kernel keeps the books: the lock goes with the last reference, by close, munmap, exec, exit or
 *   SIGKILL in any process, and not before. There is no counter that a crash could leave wrong.
 *
 * - fork copies mappings, so a child that inherits a view in use inherits its hold. Nothing in user space
 *   can lose a hold by closing descriptors by number, which is why it is a mapping and not a descriptor.
 *
 * - Between "no lock" and the new lock no process can get a handed-out description: none exists to copy. The
 *   only other party that takes locks is the supervisor, exclusively, while it gives an unused segment's
 *   pages back; the new shared lock then fails and the segment is skipped.
 *
 * - Only the producer issues a segment, and there is one at a time: LOCK_POOLED is exclusive. It comes into
 *   the world with the segment, and ends with the last reference to the pool's description, by whatever end
 *   of the producer. The supervisor asks the kernel for the same lock on a fresh description, and sends that:
 *   whether it is in the supervisor, in the socket or in the new producer, the lock is with it. If any of
 *   them is killed meanwhile, the segment is free for the next one, or gone.
 *
 * - What is unusual (a second mapping of a segment in use, odd flags, offsets or lengths, a full table, no
 *   /proc, no memfd) gets a plain mmap of the handed-out descriptor, which keeps the description by itself.
 *
 * - PyTorch's receiver remembers storages by what fstat reports for their descriptor (device, inode), for as
 *   long as the storage lives. That can be longer than it uses the segment: sharing a tensor under another
 *   strategy swaps the memory inside the living storage. So a segment is a new file to fstat each time it is
 *   issued, and the same file to all processes that have that issue (identity.c).
 *
 * Tables are fixed in size and in .bss: a process that shares nothing never touches their pages. One mutex
 * protects them; `inside` lets a signal handler that interrupts its owner pass by. fork takes the mutex
 * (lock.c). A question to the supervisor waits for as long as the supervisor lives, stopped or not
 * (broker-client.c).
 */
#pragma once

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "interposed.h"
#include "protocol.h"

/* Below this the page faults cost less than the bookkeeping would: a memfd of its own, not recycled. */
enum { SEGMENT_MIN_BYTES = 128 * 1024 };

/* Smaller tensors do not ask for room, which takes longer than writing them, and are not registered with
 * CUDA.
 */
enum { LARGE_MIN_BYTES = 512 * 1024 };

/* A free segment and an unused view are kept this long. */
enum { KEEP_MSEC = 2000 };

/* --- real.c: the next definition of each symbol, or the system call if it is not known yet --- */

#define REAL(type, name, parameters)                           type real_##name parameters;
#define REAL_VARIADIC(type, name, parameters, real_parameters) REAL(type, name, real_parameters)
INTERPOSED_NEXT(REAL)
INTERPOSED_VARIADIC(REAL_VARIADIC)
#undef REAL
#undef REAL_VARIADIC

/* --- symbols.c: what stands behind some of them, for our own part in Python --- */

int our_close(int fd);
int our_fstat(int fd, struct stat *st);
int our_poll(struct pollfd *files, nfds_t n, int msec);

/* --- lock.c: on or off, the lock, fork --- */

/* Takes the lock. False means the plain call: in set-user-ID programs, in a process that is not the one that
 * the tables describe, and when this thread is already inside. */
bool guard_enter(void);
bool guard_is_switched_off(void); /* this process was started with SHMGUARD=off */
bool guard_is_inside(void);       /* this thread is inside: for a signal handler */
void guard_leave(bool failed);    /* restores errno unless the call failed */
uint64_t now_msec(void);

/*
 * The tables check themselves in debug and sanitized builds (GUARD_CHECKS): whenever the lock is given back,
 * and so after every change. A table that contradicts itself ends the process with SIGABRT.
 */
#ifdef GUARD_CHECKS
void pool_check(void);
void views_check(void);
void pins_check(void);
#endif

/* --- file.c: files, descriptions and the locks on them --- */

typedef struct FileId {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    uint64_t allocated;
    uint64_t special; /* its device number if it is a device; 0: it is not */
    uint32_t links;
    bool regular;
} FileId;
int file_id(int fd, FileId *ret); /* by stat_call */

/* fstat by system call: the symbol differs between glibc versions, and our own reports the issue
 * (identity.c).
 */
int stat_call(int fd, struct stat *ret);

/* Moves the descriptor to a higher number, out of the way of programs that rely on low ones. */
int fd_move_up(int fd);

/* A descriptor that we keep. Its number may be another file's by the time we use it: programs close all that
 * they find. */
typedef struct OwnFd {
    int fd; /* -1: none */
    uint64_t device;
    uint64_t inode;
} OwnFd;

bool own_keep(int fd, OwnFd *ret); /* takes ownership, and moves it up; fd may be -1 */
bool own_is_open(const OwnFd *own);
void own_close(OwnFd *own);

/* A new description of the file behind fd, close-on-exec. -1 with errno; ESTALE if it is not the file that
 * the caller expects: the number was closed and given to another file. */
int description_reopen(int fd, uint64_t device, uint64_t inode);

/* A lock (OFD), shared unless it says otherwise, on one of the bytes that have a meaning (protocol.h), of the
 * description behind fd. */
bool lock_share(int fd, off_t byte);
bool lock_alone(int fd, off_t byte); /* exclusive */
void lock_give_up(int fd, off_t byte);

/* Whether another description has a lock there; `otherwise` is the answer if that cannot be asked. */
bool is_locked(int fd, off_t byte, bool otherwise);

/* Whether fd is a segment: a memfd made by this library for recycling. */
bool segment_is(int fd, const FileId *id);

/* --- identity.c: which file a handed-out description appears to be --- */

/* Marks the description behind fd as this issue of its segment. False if the mark cannot be read back. */
bool identity_set(int fd, uint64_t issue);

/* Whether this issue can be distinguished from every other file. */
bool identity_fits(uint64_t inode, uint64_t issue);

/* After a successful fstat or statx of a descriptor: replaces the segment's inode with that of the issue.
 * Signal handlers may call them. */
void identity_stat(int fd, struct stat *st);
void identity_statx(int fd, const char *path, struct statx *stx); /* with AT_EMPTY_PATH */

/* --- pool.c: the producer's side --- */

/* A handed-out descriptor of a segment with room for size bytes, or -1. */
int pool_issue(uint64_t size);

/* The same, but only a recycled segment whose pages exist and stay, because they are registered with CUDA. */
int pool_issue_again(uint64_t size);

/* A memfd, close-on-exec, or -1. */
int memfd_make(const char *name, uint64_t size);
void pool_forget(void); /* in a forked child: the parent issues these */

/* The pool forgets this segment: it makes no promise about it any more (LOCK_TOLD) and does not issue it
 * again. A segment that is not in the pool is not an error. */
void pool_disown(uint64_t device, uint64_t inode);

/* What this thread shares from now on belongs to another batch. Lock-free; signal handlers may call it. */
void batch_end(void);
uint64_t batch_number(void); /* how many this process has begun */

/* A descriptor is copied, as PyTorch does with each tensor that it sends; n bytes are being written. Neither
 * function takes the lock or changes errno. */
void batch_copied(int fd);
void batch_by_lane(void); /* a batch is about to be written that may have no descriptor */
void batch_written(size_t n);

/* --- views.c: the mappings that are kept --- */

/* Where a tensor that is being mapped comes from. */
typedef enum Origin {
    ORIGIN_HERE, /* this process is making it */
    ORIGIN_SENT, /* it arrived as a descriptor */
    ORIGIN_NAME, /* it was opened by name */
} Origin;

/* The view's address, now in use and held; MAP_FAILED if the caller must make a plain mapping. */
void *view_use(int fd, size_t size, Origin origin);

/* The descriptor of a tensor is being copied, as PyTorch does once each time it sends one. */
void view_sent(int fd);

/* True if [address, size) was a view in use: it is now kept, either unused or waiting for its copies. */
bool view_release(void *address, size_t size);

/* Something else was mapped over the first size bytes of the view in use at address: forgets the view and
 * releases its hold. */
void view_replaced(void *address, size_t size);
void view_sweep(uint64_t now);
void view_forget_unused(void);
void view_forget_inherited(void); /* in a forked child */

/* The program unmaps or maps over a part of a view: the memory is the program's own now. Its hold stays
 * forever, so that the segment is never issued again. */
void view_lose(const void *address, size_t size);

/* Lock-free: false if no view lies in this range. */
bool view_overlaps(const void *address, size_t size);

/* Lock-free: the program changes the mapping itself, by mprotect or madvise. munmap would undo that, and the
 * next tensor must not inherit it: the views in this range are unmapped when they are released. */
void view_alter(const void *address, size_t size);

/* For pins.c. */
typedef struct Pin Pin;
typedef struct ViewUse {
    char *address;
    size_t used;
    bool sole; /* no other process has the tensor, or will have it */
    Pin *pin;
} ViewUse;

/* The view in use that holds this address. */
bool view_look(const void *address, ViewUse *ret);
void view_set_pin(const char *address, Pin *pin);
void view_let_go(const char *address);  /* its copies are done */
void view_drop_at(const char *address); /* it is not registered any more */

/* --- pins.c: views that the GPU reads; the argument is there --- */

void pins_start(void);  /* by the constructor, once */
void pins_forget(void); /* in a forked child */
bool pins_wanted(void); /* lock-free: a loader of this process pins its batches */
bool pins_can_be(void); /* lock-free: a process of the job may need to know which others have a tensor */

/* With the lock, for the pin of a view: */
bool pin_release(Pin *pin);                  /* false: it waits for copies and must be held */
void pin_use_again(Pin *pin);                /* one that waits */
bool pin_leave(Pin *pin);                    /* it must be unregistered */
bool pin_is_shut(const Pin *pin);            /* it leaves or is lost: do not use it again */
bool pin_fits(const Pin *pin, size_t bytes); /* for a tensor of this size */
void pin_orphan(Pin *pin);                   /* the view is the program's own now */
#ifdef GUARD_CHECKS
bool pin_is_at(const Pin *pin, const char *address);
bool pin_is_waiting(const Pin *pin);
#endif

/* Without the lock: */
void pins_poll(void); /* queries whether copies are done, and releases what waited for them */
bool pins_wait(void); /* lock-free: the calling thread is a loader's, and something waits for its copies */

/* cudaPointerGetAttributes, for the code at caller. */
int pins_attributes(void *ret, const void *address, const void *caller);

/* A copy that may touch what is registered: begin, the real copy, end. */
typedef struct PinsCopy {
    Pin *pins[2]; /* of the source and of the target; NULL: it touches none */
    bool must_wait;
} PinsCopy;
typedef enum PinsEnd {
    PINS_STARTED,
    PINS_UNKNOWN, /* it failed, or it is not known when it runs */
} PinsEnd;
void pins_copy_begin(PinsCopy *copy, const void *target, size_t target_bytes, const void *source,
                     size_t source_bytes);
bool pins_copy_is_captured(const PinsCopy *copy, void *stream); /* into a graph, or that is not known */
void pins_copy_end(PinsCopy *copy, void *stream, PinsEnd end);

/* --- broker-client.c: the connection to the supervisor --- */

bool broker_tell(MessageType type, const char *name, int fd); /* false: no supervisor was reached */

/* 0, a negative errno of the supervisor's answer, or -ENOTCONN. ret_fd may be NULL; it is -1 if no descriptor
 * came. */
int broker_ask(MessageType type, const char *name, int fd, int *ret_fd);

/* A segment of about so many bytes whose producer has gone: the pool's own description of it, or -1. */
int broker_adopt(uint64_t bytes, uint64_t *ret_issue);
void broker_find_counters(void);  /* by the constructor */
void broker_fetch_counters(void); /* the same page, later: without a connection that stays */
bool broker_reach(void);          /* connects, so that what follows is counted; false: not reached */
bool broker_lost(void);           /* there was one, and it is gone with all that it kept */
void broker_forget(void);         /* in a forked child */
Counters *guard_counters(void);   /* never NULL */

/* --- supervisor.c: where it is; signal handlers may call it --- */

void supervisor_find(void); /* by the constructor, once */
bool supervisor_is(void);
/* A connection of its own, close-on-exec; -1 with errno. Neither connecting nor sending takes longer than
 * patience_msec; 0: no limit. */
int supervisor_connect(int patience_msec);
bool supervisor_is_other_user(int fd);           /* of a connection: it is root's, and we are not root */
bool peer_read(int fd, struct ucred *ret);       /* of a connection: who is at its other end */
int supervisor_connect_inner(int patience_msec); /* to that of a run within the run; usually there is none */

/* --- exec.c: guards the programs that this process starts; signal handlers may call all of it --- */

typedef enum ExecKind { EXEC_PATH, EXEC_SEARCH, EXEC_FD, EXEC_AT, SPAWN_PATH, SPAWN_SEARCH } ExecKind;

typedef struct ExecCall {
    ExecKind kind;
    int fd;           /* EXEC_FD and EXEC_AT */
    int flags;        /* EXEC_AT */
    const char *path; /* all but EXEC_FD */
    char *const *argv;
    /* SPAWN_PATH and SPAWN_SEARCH: */
    pid_t *pid;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
} ExecCall;

void exec_start(const char *path); /* by the constructor, once; the path of our library */
int exec_call(const ExecCall *call, char *const *given); /* the real call, with what `given` lacks */
int exec_system(const char *command);                    /* system() */
FILE *exec_popen(const char *command, const char *mode); /* popen() */

/* --- manager.c: in torch_shm_manager, PyTorch's own program --- */

void manager_start(void); /* by the constructor, once */
bool manager_is(void);    /* this process is one */
bool manager_waits_for_clients(const struct pollfd *files, nfds_t n, int msec);
int manager_wait(struct pollfd *files, int msec); /* poll, which the supervisor can end */

/* --- python.c: the interpreter, if there is one --- */

/* By the constructor, once. `find` looks up a symbol in everything that is loaded. */
void python_find(void *(*find)(const char *name));
bool python_has_stack(void); /* signal handlers may call this one and the next */
void python_write_stack(int fd);
void *python_symbol(const char *name); /* NULL: there is none */
void *python_let_run(void);            /* lets other Python threads run until python_go_on */
void python_go_on(void *thread);

/* --- python-part.c: our parts in Python; the argument is there --- */

void python_part_start(void); /* by the constructor, once */

/* Python may have made this semaphore: the parts are installed soon, if they can be. Without the lock. */
void python_part_offer(const char *semaphore);

/* --- python-where.c: the search for the line that leaks; the argument is there --- */

void where_offer(const char *semaphore); /* as python_part_offer: this process may be asked from now on */
void where_poll(const void *caller);     /* after each poll, lock-free: whether it is asked. Keeps errno */

/* --- lane.c: descriptors from a worker to its trainer; with the lock, the argument is there --- */

/* In a packet: the message's own, and one for each large part. */
enum { LANE_FDS_MAX = 65 };

typedef struct LaneName {
    size_t n;
    char text[16];
} LaneName;

typedef struct LaneFds {
    size_t n;
    int fds[LANE_FDS_MAX];
} LaneFds;

/* In a trainer: where its workers reach it. NULL: they cannot. Closes what dead workers have left. */
const LaneName *lane_listen(void);

/* In a trainer: the descriptors of this packet, which are the caller's now. False with errno. */
bool lane_take(uint64_t worker, uint64_t number, LaneFds *ret);

/* In a worker: connects to the process `pid`, and nobody else. The worker's number; 0: it could not. */
uint64_t lane_connect(const LaneName *name, pid_t pid);

/* In a worker: how many large parts of a batch may have descriptors of their own. The kernel counts what a
 * user has on its way in all sockets, and refuses more than a process may have open. */
size_t lane_parts_max(void);

/* In a worker: the packet's number; 0: it could not be sent now. The descriptors stay the caller's. */
uint64_t lane_send(const LaneFds *fds);
void lane_before_fork(void);
void lane_inherit(void);        /* in a forked child: it may go on reading what its parent would */
void lane_disown(void);         /* closes what was inherited */
bool lane_any(void);            /* lock-free: this process has listened */
void lane_child_end(pid_t pid); /* this process has waited for it: its lane is closed */

/* --- budget-client.c: whether there is memory for a segment; called without the lock --- */

/* Waits until `bytes` of the handed-out segment behind fd may be touched; may replace *fd with another
 * segment. -ENOSPC: refused. */
int budget_request(int *fd, uint64_t bytes);

/* What this thread asks for from now on it can do without: it does not wait, and a refusal is nobody's loss.
 */
void budget_optional(bool on);
bool budget_is_wanted(void);    /* a process of the job waits for room; lock-free */
void budget_tell_release(void); /* memory was released: says so if a process waits. With the lock */

/* --- witness.c: how this process ends, for the supervisor; signal handlers may call all of it --- */

void witness_start(void); /* by the constructor, once */
bool witness_watches(int signo);
bool witness_may_be_worker(void); /* the program handles SIGBUS, SIGSEGV and SIGFPE, as workers do */
int witness_sigaction(int signo, const struct sigaction *action, struct sigaction *ret_old);
void witness_hear(const char *text, size_t n); /* it was written to standard error */
void witness_child(pid_t pid, int status);     /* this process has waited for it */
void witness_leave(int code);                  /* before _exit */

/* --- progress-line.c: the supervisor's progress line on the job's terminal; signal handlers may call it ---
 */

void progress_line_make_way(int fd);                         /* before something is written to fd */
void progress_line_note(int fd, const char *text, size_t n); /* what was written */

/* --- tensors.c: a tensor from shm_open until it is known how it is shared --- */

bool pending_any(void); /* lock-free */
void pending_clear(void);

int tensor_open(const char *name, int flags, mode_t mode); /* shm_open; with the lock */
int tensor_unlink(const char *name);

/* ftruncate, in two steps: the first finds a segment, the second puts it in the place of fd. Between them the
 * process may have to ask for room, without the lock. */
typedef enum TensorResize {
    RESIZE_DONE,
    RESIZE_PLAIN, /* the real ftruncate */
    RESIZE_TAKE,
    RESIZE_ASK, /* ask for room, then take it */
} TensorResize;
TensorResize tensor_resize(int fd, off_t size, int *ret_segment);
int tensor_take(int fd, int segment, off_t size); /* takes ownership of the segment */

/* posix_fallocate. True: the pages exist; false: the caller makes the real call, without the lock, because it
 * may take long. */
bool tensor_allocate(int fd, off_t offset, off_t size);
void *tensor_map(int fd, size_t size); /* MAP_FAILED: make a plain mapping */
void tensor_close(int fd);             /* before the descriptor is closed */

/* --- native-sites.c: which Python line memory that stays was allocated under; the argument is there --- */

/* With the interpreter's lock, these three. `expected`: the stack of this thread, as Python says. False: not
 * in this process. */
struct PythonExpected;
bool native_begin(const struct PythonExpected *expected, size_t n);
void native_middle(void);
size_t native_end(char *text, size_t size); /* writes lines for python/where.py; how many bytes */
void native_forget(void);                   /* in a forked child */

/* What the program maps and unmaps itself; one load each while nothing is sampled. */
void native_mapped(const void *address, size_t size, int protection, int flags, const void *caller);
void native_unmapped(const void *address);
