/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "private-shm.h"
#include "proc-status.h"
#include "supervisor-text.h"
#include "units.h"

#define MIB (UINT64_C(1) << 20)

/*
 * With less free space than this, libraries that use /dev/shm without the guard are likely to fail. NCCL
 * takes 9 to 10 MiB for each connection of two GPUs through it: 150 MiB for a node of eight in a ring, both
 * ways. Open MPI takes 4 MiB per rank, and DALI a few batches of its own.
 */
#define SHM_WANTED_BYTES (256 * MIB)

/* Docker's default: a job with a private /dev/shm is no worse off than there. */
#define SHM_LEAST_BYTES (64 * MIB)

/* --- What is there ------------------------------------------------------------------------------------ */

typedef struct Hidden {
    const ProcStatus *self;
    ShmHints *hints;
} Hidden;

/*
 * A data set that was copied there, Ray's store, memory that another program shares with us by name: a job
 * may intend to use these. Everything else there belongs to other jobs, each of which made it for itself.
 */
static int hidden_visit(const char *name, const FileStat *stat, void *context)
{
    const Hidden *hidden = context;
    SegmentKind kind = segment_class(text_of(name), BACKING_SHM).kind;
    bool ours = kind == KIND_OTHER || kind == KIND_RAY || kind == KIND_PYTHON;
    bool readable =
        hidden->self->euid == 0 || stat->uid == hidden->self->euid || (stat->mode & (S_IRGRP | S_IROTH)) != 0;
    if (!ours || !readable)
        return 0;
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(name), &safe);
    int n = snprintf(hidden->hints->hidden, sizeof hidden->hints->hidden, "%s", buffer_text(&safe));
    if (n == 0 || n >= (int)sizeof hidden->hints->hidden)
        snprintf(hidden->hints->hidden, sizeof hidden->hints->hidden, "%s", SHM_WHY_LONG_NAME);
    return 1;
}

/* The variables that launchers set for each process they start: torchrun, Open MPI, MPICH and Intel MPI,
 * Slurm ("4(x2)": four on each of two nodes). */
static uint32_t ranks_find(const Root *root)
{
    static const char *const names[] = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                        "SLURM_STEP_TASKS_PER_NODE"};
    uint32_t most = 0;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        Text value;
        uint32_t ranks = 0;
        if (root_environment(root, names[i], &value) && text_u32(text_digits(value), 10, &ranks) == 0)
            most = MAX(most, ranks);
    }
    return most;
}

void private_shm_look(const Root *root, ShmHints *ret)
{
    ShmHints hints = {
        .local_ranks = ranks_find(root),
        .namespaces_most = U64_UNKNOWN,
        .namespaces_free = U64_UNKNOWN,
        .namespaces_fenced = U64_UNKNOWN,
    };
    ProcStatus self = {0};
    (void)proc_status_read(root, 0, &self);
    hints.capabilities = self.caps_effective;
    (void)shmfs_visit(root, hidden_visit, &(Hidden){&self, &hints});
    (void)sysctl_read(root, "user/max_user_namespaces", &hints.namespaces_most);
    (void)sysctl_read(root, "kernel/unprivileged_userns_clone", &hints.namespaces_free);
    (void)sysctl_read(root, "kernel/apparmor_restrict_unprivileged_userns", &hints.namespaces_fenced);
    *ret = hints;
}

/* --- What to do --------------------------------------------------------------------------------------- */

/* Why the shared /dev/shm is not good enough. False: it is. */
static bool is_needed(const ShmMount *shm, char why[static SHM_WHY_MAX])
{
    const char *wrong = NULL;
    if (shm->state == SHM_ABSENT)
        wrong = SHM_WHY_ABSENT;
    else if (shm->state == SHM_UNKNOWN)
        return false;
    else if (shm->read_only || shm->no_access)
        wrong = SHM_WHY_READ_ONLY;
    else if (shm->state == SHM_NOT_TMPFS)
        wrong = SHM_WHY_NOT_TMPFS;
    if (wrong) {
        snprintf(why, SHM_WHY_MAX, "%s", wrong);
        return true;
    }
    if (shm->size_bytes == 0 || shm->available_bytes == U64_UNKNOWN ||
        shm->available_bytes >= SHM_WANTED_BYTES)
        return false;
    snprintf(why, SHM_WHY_MAX, SHM_WHY_FULL, SIZE_TEXT(shm->available_bytes));
    return true;
}

/* Half, the kernel's default for a tmpfs: the rest is for the processes. */
static uint64_t size_fitting(uint64_t room_bytes)
{
    return MAX(room_bytes / 2 / MIB * MIB, SHM_LEAST_BYTES);
}

/* Whether a private one that was not asked for could do more harm than good. */
static bool is_harmful(const Machine *machine, const ShmHints *hints, bool user_namespace,
                       char why[static SHM_WHY_MAX])
{
    if (hints->hidden[0])
        snprintf(why, SHM_WHY_MAX, SHM_WHY_HIDES, hints->hidden);
    else if (hints->local_ranks > 1)
        snprintf(why, SHM_WHY_MAX, SHM_WHY_RANKS, hints->local_ranks);
    else if (user_namespace && (machine->sandbox.root || hints->capabilities != 0))
        snprintf(why, SHM_WHY_MAX, SHM_WHY_CAPABILITY);
    else
        return false;
    return true;
}

static void decide_auto(const Machine *machine, const ShmHints *hints, PrivateShm *shm)
{
    const ShmMount *shared = &machine->shm;
    uint64_t room = memory_room_bytes(machine);
    if (!is_needed(shared, shm->why))
        return;
    shm->answer = SHM_REFUSED;
    if (shared->state == SHM_ABSENT || is_harmful(machine, hints, shm->user_namespace, shm->why))
        return;
    if (room == U64_UNKNOWN) {
        snprintf(shm->why, sizeof shm->why, SHM_WHY_NO_MEMORY);
        return;
    }
    shm->bytes = size_fitting(room);
    bool usable = shared->state == SHM_OK && !shared->read_only && !shared->no_access;
    bool gains = !usable || shm->bytes > shared->available_bytes;
    shm->answer = gains ? SHM_PRIVATE : SHM_SHARED;
}

void private_shm_decide(const SizeWish *wish, const Machine *machine, const ShmHints *hints, PrivateShm *ret)
{
    PrivateShm shm = {.answer = SHM_SHARED, .user_namespace = !machine->sandbox.sys_admin};
    switch (wish->kind) {
    case WISH_OFF:
        break;
    case WISH_AUTO:
        decide_auto(machine, hints, &shm);
        break;
    case WISH_SIZE:
        shm.must = true;
        shm.bytes = wish->bytes;
        shm.answer = SHM_PRIVATE;
        if (machine->shm.state == SHM_ABSENT) {
            shm.answer = SHM_REFUSED;
            snprintf(shm.why, sizeof shm.why, SHM_WHY_NO_FOLDER);
        }
        break;
    }
    *ret = shm;
}

/* --- In the new process ------------------------------------------------------------------------------- */

static int file_write(const char *path, const char *text)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t n = strlen(text);
    return write(fd, text, n) == (ssize_t)n ? 0 : -errno;
}

/* Each id is mapped to itself, and no other is. The kernel requires that setgroups be given up for this; our
 * groups stay, without numbers. Kernels before 3.19 do not require it. */
static int ids_keep(uid_t uid, gid_t gid)
{
    char line[64];
    int r = file_write("/proc/self/setgroups", "deny");
    if (r < 0 && r != -ENOENT)
        return r;
    snprintf(line, sizeof line, "%u %u 1", (unsigned)uid, (unsigned)uid);
    r = file_write("/proc/self/uid_map", line);
    if (r < 0)
        return r;
    snprintf(line, sizeof line, "%u %u 1", (unsigned)gid, (unsigned)gid);
    return file_write("/proc/self/gid_map", line);
}

/* What a new user namespace resets, and what exec turns into rights. */
typedef struct Rights {
    uint64_t bounding;
    int secure;
} Rights;

static Rights rights_remember(void)
{
    Rights rights = {.secure = prctl(PR_GET_SECUREBITS)};
    for (int i = 0; i < 64; i++)
        if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            rights.bounding |= UINT64_C(1) << i;
    return rights;
}

/*
 * The creator of a user namespace has every right in it. exec removes the rights of all users except root,
 * whose bounding set decides; it is restored to what it was. Since our present rights are dropped as well,
 * nothing is left even for an exec that keeps some.
 */
static int rights_give_up(const Rights *before)
{
    if (before->secure > 0 && prctl(PR_SET_SECUREBITS, before->secure) < 0)
        return -errno;
    for (int i = 0; i < 64; i++)
        if (!(before->bounding >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1 &&
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
            return -errno;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int user_namespace_enter(ShmStep *step)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    *step = SHM_STEP_USER;
    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    *step = SHM_STEP_IDS;
    return ids_keep(uid, gid);
}

static int tmpfs_enter(uint64_t bytes, ShmStep *step)
{
    char options[64];
    *step = SHM_STEP_MOUNTS;
    if (unshare(CLONE_NEWNS) < 0)
        return -errno;
    /* Slave rather than private: what the machine mounts later, such as an automounted data set, still
     * appears. */
    *step = SHM_STEP_SPREAD;
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -errno;
    *step = SHM_STEP_TMPFS;
    snprintf(options, sizeof options, "mode=1777,size=%llu", (unsigned long long)bytes);
    return mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

int private_shm_enter(const PrivateShm *shm, ShmStep *ret_step)
{
    ShmStep step = SHM_STEP_MOUNTS;
    Rights before = {0};
    int r = 0;
    if (shm->user_namespace) {
        before = rights_remember();
        r = user_namespace_enter(&step);
    }
    if (r >= 0)
        r = tmpfs_enter(shm->bytes, &step);
    if (r >= 0 && shm->user_namespace) {
        step = SHM_STEP_RIGHTS;
        r = rights_give_up(&before);
    }
    if (r < 0)
        *ret_step = step;
    return r;
}

/* --- Trying it ---------------------------------------------------------------------------------------- */

typedef struct Outcome {
    int error;
    ShmStep step;
} Outcome;

/* The process has no exit signal, so that code that watches for children does not notice it. */
static Outcome process_try(const PrivateShm *shm)
{
    Outcome outcome = {0, SHM_STEP_PROCESS};
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return (Outcome){-errno, SHM_STEP_PROCESS};
    _cleanup_close_ int reading = pipes[0];
    _cleanup_close_ int writing = pipes[1];
    long pid = syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
    if (pid < 0)
        return (Outcome){-errno, SHM_STEP_PROCESS};
    if (pid == 0) {
        outcome.error = private_shm_enter(shm, &outcome.step);
        ssize_t n = write(writing, &outcome, sizeof outcome);
        _exit(n != sizeof outcome);
    }
    fd_close(TAKE_FD(writing));
    ssize_t n;
    do
        n = read(reading, &outcome, sizeof outcome);
    while (n < 0 && errno == EINTR);
    if (n != sizeof outcome) /* a seccomp filter may kill instead of refusing */
        outcome = (Outcome){-EPERM, shm->user_namespace ? SHM_STEP_USER : SHM_STEP_MOUNTS};
    pid_t ended;
    do
        ended = waitpid((pid_t)pid, NULL, __WALL);
    while (ended < 0 && errno == EINTR);
    return outcome;
}

static const char *user_refused(int error, const Machine *machine, const ShmHints *hints)
{
    if (error == ENOSPC || error == EUSERS || hints->namespaces_most == 0)
        return hints->namespaces_most == 0 ? SHM_WHY_USERNS_OFF : SHM_WHY_USERNS_LIMIT;
    if (error == ENOSYS || error == EINVAL)
        return SHM_WHY_USERNS_NONE;
    if (hints->namespaces_free == 0)
        return SHM_WHY_USERNS_USERS;
    if (machine->sandbox.seccomp == 2)
        return SHM_WHY_USERNS_SECCOMP;
    return NULL;
}

/* Ubuntu lets every user make a user namespace, and removes the rights in it. */
static const char *rights_refused(const Machine *machine, const ShmHints *hints)
{
    if (!machine->sandbox.sys_admin && hints->namespaces_fenced == 1)
        return SHM_WHY_USERNS_APPARMOR;
    return SHM_WHY_MOUNTS;
}

static void step_explain(ShmStep step, int error, char why[static SHM_WHY_MAX])
{
    const char *said = error_text(error);
    switch (step) {
    case SHM_STEP_PROCESS:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_PROCESS, said);
        break;
    case SHM_STEP_USER:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_USER, said);
        break;
    case SHM_STEP_IDS:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_IDS, said);
        break;
    case SHM_STEP_MOUNTS:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_MOUNTS, said);
        break;
    case SHM_STEP_SPREAD:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_SPREAD, said);
        break;
    case SHM_STEP_TMPFS:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_TMPFS, said);
        break;
    case SHM_STEP_RIGHTS:
        snprintf(why, SHM_WHY_MAX, SHM_FAILED_RIGHTS, said);
        break;
    }
}

void private_shm_explain(ShmStep step, int error, const Machine *machine, const ShmHints *hints,
                         char why[static SHM_WHY_MAX])
{
    const char *words = NULL;
    bool refused = error == EPERM || error == EACCES;
    if (step == SHM_STEP_USER)
        words = user_refused(error, machine, hints);
    else if (step == SHM_STEP_TMPFS && (error == ENOENT || error == ENOTDIR))
        words = SHM_WHY_NO_FOLDER;
    else if (step != SHM_STEP_PROCESS && step != SHM_STEP_RIGHTS && refused)
        words = rights_refused(machine, hints);
    if (words)
        snprintf(why, SHM_WHY_MAX, "%s", words);
    else
        step_explain(step, error, why);
}

int private_shm_try(PrivateShm *shm, const Machine *machine, const ShmHints *hints)
{
    Outcome outcome = process_try(shm);
    if (outcome.error < 0) {
        shm->answer = SHM_REFUSED;
        private_shm_explain(outcome.step, -outcome.error, machine, hints, shm->why);
    }
    return outcome.error;
}
