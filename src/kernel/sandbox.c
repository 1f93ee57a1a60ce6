/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

enum {
    CAPABILITY_SYS_PTRACE = 19,
    CAPABILITY_SYS_ADMIN = 21,
    SYSTEM_UID_MAX = 999, /* systemd's default */
    SMALL_FILE_MAX = 64 * 1024,
};

/* The inode numbers of the machine's first namespaces, fixed in the kernel's include/linux/proc_ns.h. */
#define PIDNS_INITIAL    "pid:[4026531836]"
#define USERNS_INITIAL   "user:[4026531837]"
#define CGROUPNS_INITIAL "cgroup:[4026531835]"

static bool link_is(const Root *root, const char *path, const char *target)
{
    char buf[64];
    return root_link(root, path, buf, sizeof buf) > 0 && strcmp(buf, target) == 0;
}

/* What each runtime leaves behind, and where. */
typedef struct RuntimeTraces {
    bool kubernetes;
    bool podman;
    bool docker;
    bool containerd;
    bool crio;
    bool lxc;
    bool storage; /* the place where both Podman and CRI-O keep their layers */
    bool other;   /* a container of unknown kind */
} RuntimeTraces;

/*
 * /proc/PID/cgroup of ourselves and of pid 1. Runtimes name groups after themselves: "/docker/ID",
 * "/system.slice/docker-ID.scope", "/kubepods.slice/…/cri-containerd-ID.scope",
 * "/machine.slice/libpod-ID.scope",
 * "/lxc/NAME", "/lxc.payload.NAME". The daemons themselves ("docker.service") run outside of any container.
 */
static void evidence_cgroup(const Root *root, const char *path, Buffer *scratch, RuntimeTraces *traces)
{
    if (root_read(root, path, SMALL_FILE_MAX, scratch) < 0)
        return;
    Text text = {buffer_text(scratch), scratch->size};
    traces->kubernetes |= text_contains(text, "/kubepods");
    traces->docker |= text_contains(text, "/docker/") || text_contains(text, "/docker-");
    traces->podman |= text_contains(text, "/libpod");
    traces->crio |= text_contains(text, "/crio-");
    traces->containerd |= text_contains(text, "/cri-containerd") || text_contains(text, "/nerdctl-");
    traces->lxc |= text_contains(text, "/lxc/") || text_contains(text, "/lxc.payload");
}

/* The layers of the root file system, and the files that runtimes mount over those of the image. */
static void evidence_mounts(const Mounts *mounts, RuntimeTraces *traces)
{
    static const char *const places[] = {"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        const Mount *mount = mounts_at(mounts, places[i]);
        if (!mount)
            continue;
        Text text = text_of(i == 0 ? mount->super_options : mount->root);
        if (i == 0 && strcmp(mount->type, "overlay") != 0)
            continue;
        traces->kubernetes |= text_contains(text, "/kubelet/pods/");
        traces->docker |= text_contains(text, "/docker/");
        traces->containerd |= text_contains(text, "/containerd/") || text_contains(text, "io.containerd");
        traces->storage |= text_contains(text, "/containers/storage/");
    }
    const Mount *meminfo = mounts_at(mounts, "/proc/meminfo");
    traces->lxc |= meminfo && strcmp(meminfo->type, "fuse.lxcfs") == 0;
}

static void evidence_named(Text name, RuntimeTraces *traces)
{
    name = text_trim(name);
    traces->podman |= text_equal(name, "podman");
    traces->docker |= text_equal(name, "docker");
    traces->lxc |= text_equal(name, "lxc") || text_equal(name, "lxc-libvirt");
    traces->other |= name.size > 0;
}

static void evidence_files(const Root *root, Buffer *scratch, RuntimeTraces *traces)
{
    Text value;
    traces->docker |= root_exists(root, ".dockerenv");
    traces->podman |= root_exists(root, "run/.containerenv");
    traces->kubernetes |= root_exists(root, "var/run/secrets/kubernetes.io") ||
                          root_exists(root, "run/secrets/kubernetes.io") ||
                          root_environment(root, "KUBERNETES_SERVICE_HOST", &value);
    traces->lxc |= root_exists(root, "dev/lxd") || root_exists(root, "dev/lxc");
    if (root_environment(root, "container", &value))
        evidence_named(value, traces); /* images set "oci", too, whatever runs them */
    if (root_read(root, "run/systemd/container", SMALL_FILE_MAX, scratch) >= 0)
        evidence_named((Text){buffer_text(scratch), scratch->size}, traces);
}

/*
 * Certainly outside of any container: we see the machine's own processes and groups, and no runtime has put
 * us in a group or mounted its layers. Docker's empty /.dockerenv does not prove the opposite: it stays in an
 * image that was unpacked to boot a virtual machine.
 */
static bool is_machine(const Root *root, const Sandbox *sandbox, const RuntimeTraces *running)
{
    return sandbox->initial_pidns && link_is(root, "proc/self/ns/cgroup", CGROUPNS_INITIAL) &&
           !running->kubernetes && !running->docker && !running->podman && !running->crio &&
           !running->containerd && !running->lxc && !running->storage;
}

/* Kubernetes runs on the other runtimes; a container in an LXC guest may also show the guest's traces. */
static EnvironmentKind evidence_kind(const RuntimeTraces *traces, bool initial_pidns)
{
    if (traces->kubernetes)
        return ENVIRONMENT_KUBERNETES;
    if (traces->podman || traces->storage)
        return ENVIRONMENT_PODMAN;
    if (traces->docker)
        return ENVIRONMENT_DOCKER;
    if (traces->lxc)
        return ENVIRONMENT_LXC;
    bool container = traces->containerd || traces->crio || traces->other || !initial_pidns;
    return container ? ENVIRONMENT_UNKNOWN : ENVIRONMENT_BARE;
}

static const char *evidence_runtime(const RuntimeTraces *traces, EnvironmentKind kind)
{
    switch (kind) {
    case ENVIRONMENT_DOCKER:
    case ENVIRONMENT_PODMAN:
    case ENVIRONMENT_LXC:
        return environment_name(kind);
    case ENVIRONMENT_KUBERNETES:
    case ENVIRONMENT_UNKNOWN: /* CRI-O leaves a /run/.containerenv, too */
        return traces->crio || traces->storage || traces->podman ? "cri-o"
               : traces->docker                                  ? "docker"
               : traces->containerd                              ? "containerd"
                                                                 : "";
    case ENVIRONMENT_BARE:
        break;
    }
    return "";
}

static void kind_find(const Root *root, const Mounts *mounts, Buffer *scratch, Sandbox *sandbox)
{
    RuntimeTraces traces = {0};
    evidence_cgroup(root, "proc/self/cgroup", scratch, &traces);
    evidence_mounts(mounts, &traces);
    if (is_machine(root, sandbox, &traces)) {
        sandbox->kind = ENVIRONMENT_BARE;
        return;
    }
    if (!sandbox->initial_pidns) /* otherwise pid 1 is the machine's, not a container's */
        evidence_cgroup(root, "proc/1/cgroup", scratch, &traces);
    evidence_files(root, scratch, &traces);

    sandbox->kind = evidence_kind(&traces, sandbox->initial_pidns);
    snprintf(sandbox->runtime, sizeof sandbox->runtime, "%s", evidence_runtime(&traces, sandbox->kind));
}

/* "/slurm/uid_1000/job_7/step_0", "/system.slice/slurmstepd.scope/job_7/…". slurmd.service itself is not a
 * job. */
static bool slurm_find(const Root *root, Buffer *scratch)
{
    Text value;
    if (root_environment(root, "SLURM_JOB_ID", &value))
        return true;
    if (root_read(root, "proc/self/cgroup", SMALL_FILE_MAX, scratch) < 0)
        return false;
    TEXT_FOR_EACH_LINE (line, ((Text){scratch->data, scratch->size}))
        if (text_contains(line, "slurm") && text_contains(line, "/job_"))
            return true;
    return false;
}

/* hidepid=1 lists the processes of other users without details; 2 and 4 do not list them. Names are used
 * since Linux 5.8. */
static bool proc_hides(const Mounts *mounts)
{
    const Mount *proc = mounts_at(mounts, "/proc");
    Text value;
    if (!proc || !mount_option(proc->super_options, "hidepid", &value))
        return false;
    return !text_equal(value, "0") && !text_equal(value, "off");
}

/* A confined process is refused mount(2) whatever its capabilities: Docker's AppArmor profile, SELinux's
 * container_t. */
static bool is_confined(const Root *root, Buffer *scratch)
{
    if (root_read(root, "proc/self/attr/current", SMALL_FILE_MAX, scratch) < 0)
        return false;
    Text profile = text_trim((Text){buffer_text(scratch), scratch->size});
    return text_ends(profile, " (enforce)") || text_contains(profile, ":container_t:");
}

/*
 * The kernel requires CAP_SYS_ADMIN in the user namespace that mounted the tmpfs. In the initial namespace
 * that is the case. In another one, the tmpfs shows "uid=" if that namespace's root mounted it (its owner is
 * then not the machine's root); without it, the mount came from outside. If that root is also the machine's
 * root, the answer "no" is wrong, but it has other ways.
 */
static bool may_remount(const Root *root, const Mounts *mounts, const Sandbox *sandbox, Buffer *scratch)
{
    const Mount *shm = mounts_at(mounts, "/dev/shm");
    Text value;
    if (!sandbox->sys_admin || !shm || strcmp(shm->type, "tmpfs") != 0 ||
        mount_option(shm->options, "ro", &value) || mount_option(shm->super_options, "ro", &value))
        return false;
    return (sandbox->initial_userns || mount_option(shm->super_options, "uid", &value)) &&
           !is_confined(root, scratch);
}

static int namespaces_enter(void *unused)
{
    (void)unused;
    return unshare(CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0;
}

/*
 * With a mount namespace in it, because that is its purpose, and because Ubuntu 24.04 lets every user make a
 * user namespace and then removes the rights in it.
 *
 * We may be in the process of a large training (the C API). So the child borrows our memory instead of
 * copying its page tables, while this thread waits, and no signal handler runs in it. It has no exit signal,
 * so that a program which handles or ignores SIGCHLD does not notice it.
 */
static bool namespaces_make(void)
{
    enum { STACK_BYTES = 16 * 1024 };
    _Alignas(16) char stack[STACK_BYTES];
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t pid = clone(namespaces_enter, stack + sizeof stack, CLONE_VM | CLONE_VFORK, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return false;
    int status = 0;
    pid_t r;
    do
        r = waitpid(pid, &status, __WALL);
    while (r < 0 && errno == EINTR);
    return r == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint64_t sysctl_number(const Root *root, const char *path, uint64_t otherwise, Buffer *scratch)
{
    uint64_t value = otherwise;
    if (root_read(root, path, SMALL_FILE_MAX, scratch) >= 0)
        (void)text_u64(text_trim((Text){buffer_text(scratch), scratch->size}), 10, &value);
    return value;
}

/* What was found by trying when the tree was captured: lines of "NAME 0" or "NAME 1". */
static Tristate capture_tried(const Root *root, const char *name, Buffer *scratch)
{
    if (root_read(root, ".capture/tried", SMALL_FILE_MAX, scratch) < 0)
        return DONT_KNOW;
    TEXT_FOR_EACH_LINE (line, ((Text){scratch->data, scratch->size})) {
        Text word;
        if (text_word(&line, &word) && text_equal(word, name))
            return text_equal(text_trim(line), "1") ? YES : NO;
    }
    return DONT_KNOW;
}

bool user_namespaces_try(const Root *root)
{
    _cleanup_buffer_ Buffer scratch = {0};
    if (root->live)
        return namespaces_make();
    Tristate tried = capture_tried(root, "user_namespaces", &scratch);
    if (tried != DONT_KNOW)
        return tried == YES;
    return sysctl_number(root, "proc/sys/user/max_user_namespaces", 0, &scratch) > 0 &&
           sysctl_number(root, "proc/sys/kernel/unprivileged_userns_clone", 1, &scratch) != 0 &&
           sysctl_number(root, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0, &scratch) != 1;
}

/* vm.memfd_noexec=2 refuses memfds without the flag; kernels before 6.3 refuse the flag. */
static bool memfd_find(const Root *root, Buffer *scratch)
{
    if (!root->live)
        return capture_tried(root, "memfd", scratch) != NO;
    int fd = memfd_create("shmguard", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0)
        fd = memfd_create("shmguard", MFD_CLOEXEC);
    fd_close(fd);
    return fd >= 0;
}

static Tristate boolean_parse(Text value)
{
    static const struct {
        const char *word;
        Tristate meaning;
    } words[] = {{"1", YES}, {"yes", YES}, {"y", YES}, {"true", YES}, {"t", YES}, {"on", YES},
                 {"0", NO},  {"no", NO},   {"n", NO},  {"false", NO}, {"f", NO},  {"off", NO}};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (value.size == strlen(words[i].word) && strncasecmp(value.data, words[i].word, value.size) == 0)
            return words[i].meaning;
    return DONT_KNOW;
}

Tristate logind_parse_remove_ipc(Text text)
{
    Tristate answer = DONT_KNOW;
    bool login = false;
    bool continued =
        false; /* the previous line ended in a backslash: this one is not an assignment of its own */
    TEXT_FOR_EACH_LINE (raw, text) {
        Text line = text_trim(raw);
        bool comment = text_starts(line, "#") || text_starts(line, ";");
        bool whole = !continued;
        continued = !comment ? text_ends(line, "\\") : continued;
        if (!whole || comment)
            continue;
        if (text_starts(line, "["))
            login = text_equal(line, "[Login]");
        Text key;
        if (!login || !text_until(&line, '=', &key) || !text_equal(text_trim(key), "RemoveIPC"))
            continue;
        Tristate value = boolean_parse(text_trim(line));
        if (value != DONT_KNOW)
            answer = value;
    }
    return answer;
}

/* Where systemd looks, the strongest first: a drop-in hides those of the same name in later places. */
static const char *const config_places[] = {"etc/systemd", "run/systemd", "usr/local/lib/systemd",
                                            "usr/lib/systemd"};

typedef struct DropIn {
    char name[256];
    const char *place;
} DropIn;

typedef struct DropIns {
    DropIn *items;
    size_t n;
    size_t capacity;
} DropIns;

static int drop_in_order(const void *a, const void *b)
{
    return strcmp(((const DropIn *)a)->name, ((const DropIn *)b)->name);
}

static void drop_ins_list(const Root *root, const char *place, Arena *arena, DropIns *list)
{
    enum { DROP_INS_MAX = 256 };
    char path[64];
    snprintf(path, sizeof path, "%s/logind.conf.d", place);
    DIR *dir = root_list(root, path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) && list->n < DROP_INS_MAX;) {
        bool hidden = entry->d_name[0] == '.' || !text_ends(text_of(entry->d_name), ".conf");
        for (size_t i = 0; i < list->n && !hidden; i++)
            hidden = strcmp(list->items[i].name, entry->d_name) == 0;
        DropIn *slot = hidden ? NULL : ARENA_PUSH(arena, list->items, list->n, list->capacity);
        if (!slot)
            continue;
        snprintf(slot->name, sizeof slot->name, "%s", entry->d_name);
        slot->place = place;
    }
    closedir(dir);
}

static Tristate config_read(const Root *root, const char *path, Tristate before, Buffer *scratch)
{
    if (root_read(root, path, SMALL_FILE_MAX, scratch) < 0)
        return before;
    Tristate value = logind_parse_remove_ipc((Text){buffer_text(scratch), scratch->size});
    return value == DONT_KNOW ? before : value;
}

static Tristate remove_ipc_find(const Root *root, Buffer *scratch)
{
    /* logind leaves system users alone. */
    if (root_uid(root) <= SYSTEM_UID_MAX)
        return NO;

    _cleanup_arena_ Arena arena = {0};
    DropIns list = {0};
    Tristate answer = DONT_KNOW;
    char path[512];
    for (size_t i = 0; i < ARRAY_SIZE(config_places); i++) {
        snprintf(path, sizeof path, "%s/logind.conf", config_places[i]);
        if (root_exists(root, path)) {
            answer = config_read(root, path, answer, scratch);
            break;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(config_places); i++)
        drop_ins_list(root, config_places[i], &arena, &list);
    if (list.n > 0)
        qsort(list.items, list.n, sizeof *list.items, drop_in_order);
    for (size_t i = 0; i < list.n; i++) {
        snprintf(path, sizeof path, "%s/logind.conf.d/%s", list.items[i].place, list.items[i].name);
        answer = config_read(root, path, answer, scratch);
    }

    /* Nothing is set: systemd's own default is yes, distributions have others. Without systemd there is no
     * logind. */
    if (answer == DONT_KNOW && !root_exists(root, "run/systemd/system"))
        answer = NO;
    return answer;
}

void sandbox_read(const Root *root, const Mounts *mounts, const ProcStatus *self, Sandbox *ret)
{
    _cleanup_buffer_ Buffer scratch = {0};
    Sandbox sandbox = {
        .root = self->euid == 0,
        .sys_admin = (self->caps_effective >> CAPABILITY_SYS_ADMIN & 1) != 0,
        .initial_userns = link_is(root, "proc/self/ns/user", USERNS_INITIAL),
        .initial_pidns = link_is(root, "proc/self/ns/pid", PIDNS_INITIAL),
        .seccomp = self->seccomp,
        .no_new_privs = self->no_new_privs,
        .user_namespaces = DONT_KNOW,
    };
    bool ptrace = sandbox.initial_userns && (self->caps_effective >> CAPABILITY_SYS_PTRACE & 1) != 0;
    sandbox.hidepid = !ptrace && proc_hides(mounts);
    sandbox.sees_all = sandbox.initial_pidns && !sandbox.hidepid;
    kind_find(root, mounts, &scratch, &sandbox);
    sandbox.slurm = slurm_find(root, &scratch);
    sandbox.can_remount = may_remount(root, mounts, &sandbox, &scratch);
    sandbox.remove_ipc = remove_ipc_find(root, &scratch);
    sandbox.memfd = memfd_find(root, &scratch);
    *ret = sandbox;
}

const char *environment_name(EnvironmentKind kind)
{
    static const char *const names[] = {
        [ENVIRONMENT_BARE] = "bare",     [ENVIRONMENT_DOCKER] = "docker",
        [ENVIRONMENT_PODMAN] = "podman", [ENVIRONMENT_KUBERNETES] = "kubernetes",
        [ENVIRONMENT_LXC] = "lxc",       [ENVIRONMENT_UNKNOWN] = "unknown",
    };
    return names[kind];
}
