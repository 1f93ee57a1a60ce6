/* SPDX-License-Identifier: Apache-2.0 */
/* The decision is tested with tables, the mount for real: as root, as an ordinary user, and refused in every
 * way. */
#include "temp-root.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "private-shm.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { NOBODY = 65534 };

/* A container as Docker starts it, but with the right to mount. */
static Machine container(void)
{
    return (Machine){
        .memory = {.total_bytes = 64 * GIB, .available_bytes = 48 * GIB},
        .shm = {.state = SHM_OK, .size_bytes = 64 * MIB, .available_bytes = 64 * MIB, .mounted = true},
        .cgroup = {.memory_limit_bytes = U64_UNKNOWN, .memory_room_bytes = U64_UNKNOWN},
        .sandbox = {.sys_admin = true, .root = true},
    };
}

static void spoil_nothing(Machine *machine, ShmHints *hints)
{
    (void)machine;
    (void)hints;
}

static void spoil_large(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm.available_bytes = 256 * MIB;
}

static void spoil_barely(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm.size_bytes = 32 * GIB;
    machine->shm.available_bytes = 256 * MIB - 1;
}

static void spoil_unlimited(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm.size_bytes = 0;
    machine->shm.available_bytes = U64_UNKNOWN;
}

static void spoil_absent(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm = (ShmMount){.state = SHM_ABSENT};
}

static void spoil_disk(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm = (ShmMount){.state = SHM_NOT_TMPFS, .size_bytes = 100 * GIB, .available_bytes = 90 * GIB};
}

static void spoil_read_only(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm.read_only = true;
    machine->memory.available_bytes = 100 * MIB;
}

static void spoil_unknown(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm.state = SHM_UNKNOWN;
}

static void spoil_memory(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->memory.available_bytes = 100 * MIB;
    machine->shm.available_bytes = 10 * MIB;
}

static void spoil_little_gain(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->memory.available_bytes = 100 * MIB;
}

static void spoil_group(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->cgroup.memory_limit_bytes = 8 * GIB;
    machine->cgroup.memory_room_bytes = 6 * GIB;
}

static void spoil_group_unknown(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->cgroup.memory_limit_bytes = 8 * GIB;
}

static void spoil_group_beyond(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->shm.available_bytes = 0;
    machine->cgroup.memory_limit_bytes = 8 * GIB;
    machine->cgroup.memory_room_bytes = 0;
}

static void spoil_no_figures(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->memory.available_bytes = U64_UNKNOWN;
}

static void spoil_files(Machine *machine, ShmHints *hints)
{
    (void)machine;
    strcpy(hints->hidden, "imagenet.tar");
}

static void spoil_ranks(Machine *machine, ShmHints *hints)
{
    (void)machine;
    hints->local_ranks = 8;
}

static void spoil_root(Machine *machine, ShmHints *hints)
{
    machine->sandbox.sys_admin = false;
    hints->capabilities = 0xa80425fb;
}

static void spoil_user(Machine *machine, ShmHints *hints)
{
    (void)hints;
    machine->sandbox = (Sandbox){0};
}

static void test_decide(void **state)
{
    (void)state;
    static const SizeWish off = {WISH_OFF, 0};
    static const SizeWish automatic = {WISH_AUTO, 0};
    static const SizeWish sized = {WISH_SIZE, 2 * GIB};
    static const struct {
        const SizeWish *wish;
        void (*spoil)(Machine *machine, ShmHints *hints);
        ShmAnswer answer;
        uint64_t bytes;
        const char *why; /* a part of the message */
        bool user_namespace;
    } cases[] = {
        {&off, spoil_absent, SHM_SHARED, 0, "", false},
        {&automatic, spoil_nothing, SHM_PRIVATE, 24 * GIB, "has only 64.0 MiB free", false},
        {&automatic, spoil_large, SHM_SHARED, 0, "", false},
        {&automatic, spoil_barely, SHM_PRIVATE, 24 * GIB, "free", false},
        {&automatic, spoil_unlimited, SHM_SHARED, 0, "", false},
        {&automatic, spoil_absent, SHM_REFUSED, 0, "/dev/shm does not exist", false},
        {&automatic, spoil_disk, SHM_PRIVATE, 24 * GIB, "not a tmpfs", false},
        {&automatic, spoil_read_only, SHM_PRIVATE, 64 * MIB, "cannot be written", false},
        {&automatic, spoil_unknown, SHM_SHARED, 0, "", false},
        {&automatic, spoil_memory, SHM_PRIVATE, 64 * MIB, "10.0 MiB", false},
        {&automatic, spoil_little_gain, SHM_SHARED, 64 * MIB, "", false},
        {&automatic, spoil_group, SHM_PRIVATE, 3 * GIB, "", false},
        {&automatic, spoil_group_unknown, SHM_PRIVATE, 4 * GIB, "", false},
        {&automatic, spoil_group_beyond, SHM_PRIVATE, 64 * MIB, "", false},
        {&automatic, spoil_no_figures, SHM_REFUSED, 0, "unknown", false},
        {&automatic, spoil_files, SHM_REFUSED, 0, "imagenet.tar", false},
        {&automatic, spoil_ranks, SHM_REFUSED, 0, "8 processes of this job", false},
        {&automatic, spoil_root, SHM_REFUSED, 0, "CAP_SYS_ADMIN", true},
        {&automatic, spoil_user, SHM_PRIVATE, 24 * GIB, "", true},
        {&sized, spoil_large, SHM_PRIVATE, 2 * GIB, "", false},
        {&sized, spoil_files, SHM_PRIVATE, 2 * GIB, "", false},
        {&sized, spoil_ranks, SHM_PRIVATE, 2 * GIB, "", false},
        {&sized, spoil_root, SHM_PRIVATE, 2 * GIB, "", true},
        {&sized, spoil_user, SHM_PRIVATE, 2 * GIB, "", true},
        {&sized, spoil_absent, SHM_REFUSED, 2 * GIB, "no directory /dev/shm", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Machine machine = container();
        ShmHints hints = {0};
        PrivateShm shm;
        cases[i].spoil(&machine, &hints);
        private_shm_decide(cases[i].wish, &machine, &hints, &shm);
        if (shm.answer != cases[i].answer || shm.bytes != cases[i].bytes ||
            shm.user_namespace != cases[i].user_namespace || !strstr(shm.why, cases[i].why))
            fail_msg("case %zu: %d, %llu bytes, %s", i, shm.answer, (unsigned long long)shm.bytes, shm.why);
        assert_int_equal(shm.must, cases[i].wish->kind == WISH_SIZE);
    }
}

static void test_explain(void **state)
{
    (void)state;
    static const ShmHints plain = {.namespaces_most = 100, .namespaces_free = U64_UNKNOWN};
    static const ShmHints none = {.namespaces_free = U64_UNKNOWN};
    static const ShmHints debian = {.namespaces_most = 100, .namespaces_free = 0};
    static const ShmHints ubuntu = {.namespaces_most = 100, .namespaces_free = 1, .namespaces_fenced = 1};
    static const struct {
        ShmStep step;
        int error;
        const ShmHints *hints;
        Sandbox sandbox;
        const char *words;
    } cases[] = {
        {SHM_STEP_USER, ENOSPC, &none, {0}, "max_user_namespaces is 0"},
        {SHM_STEP_USER, ENOSPC, &plain, {0}, "the limit of user namespaces is reached"},
        {SHM_STEP_USER, ENOSYS, &plain, {0}, "this kernel has no"},
        {SHM_STEP_USER, EPERM, &debian, {0}, "unprivileged_userns_clone is 0"},
        {SHM_STEP_USER, EPERM, &plain, {.seccomp = 2}, "seccomp filter"},
        {SHM_STEP_USER, EPERM, &plain, {0}, "the user namespace could not be made: Operation not permitted"},
        {SHM_STEP_IDS, EPERM, &ubuntu, {0}, "AppArmor gives no rights"},
        {SHM_STEP_MOUNTS, EPERM, &ubuntu, {0}, "apparmor_restrict_unprivileged_userns"},
        {SHM_STEP_MOUNTS, EPERM, &ubuntu, {.sys_admin = true}, "most likely by the container's"},
        {SHM_STEP_TMPFS, EACCES, &plain, {.sys_admin = true}, "AppArmor, SELinux or seccomp"},
        {SHM_STEP_TMPFS, ENOENT, &plain, {0}, "no directory /dev/shm"},
        {SHM_STEP_TMPFS, ENOMEM, &plain, {0}, "could not be mounted on /dev/shm: Cannot allocate memory"},
        {SHM_STEP_SPREAD, EINVAL, &plain, {0}, "kept apart from those of the machine: Invalid argument"},
        {SHM_STEP_PROCESS, EAGAIN, &plain, {0}, "no process could be started to try it: Resource"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[SHM_WHY_MAX];
        Machine machine = {.sandbox = cases[i].sandbox};
        private_shm_explain(cases[i].step, cases[i].error, &machine, cases[i].hints, why);
        if (!strstr(why, cases[i].words))
            fail_msg("case %zu: %s", i, why);
    }
}

static void test_look(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *environment;
        const char *uid; /* our own; the files belong to 1000 and have mode 0600 */
        const char *hidden;
        uint32_t ranks;
    } cases[] = {
        {"dev/shm/torch_1_2_3", "", "1000", "", 0},
        {"dev/shm/nccl-abcdef", "", "1000", "", 0},
        {"dev/shm/plasmaabcdef", "", "1000", "plasmaabcdef", 0},
        {"dev/shm/psm_01234567", "", "1000", "psm_01234567", 0},
        {"dev/shm/data/train.tar", "", "1000", "data/train.tar", 0},
        {"dev/shm/train.tar", "", "1001", "", 0},
        {"dev/shm/train.tar", "", "0", "train.tar", 0},
        {"dev/shm/a\033[2J", "", "0", "a\\x1b[2J", 0},
        {"dev/shm/torch_1_2_3", "LOCAL_WORLD_SIZE=4\n", "0", "", 4},
        {"dev/shm/torch_1_2_3", "SLURM_STEP_TASKS_PER_NODE=8(x2)\n", "0", "", 8},
        {"dev/shm/torch_1_2_3", "MPI_LOCALNRANKS=\nOMPI_COMM_WORLD_LOCAL_SIZE=x\n", "0", "", 0},
        {"dev/shm/torch_1_2_3", "MPI_LOCALNRANKS=99999999999999\n", "0", "", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        TempRoot temp = temp_root_make();
        char status[128];
        char escaped[256];
        char *end = escaped;
        for (const char *c = cases[i].file; *c; c++)
            end += sprintf(end, *c == '\033' ? "\\%03o" : "%c", (unsigned char)*c);
        char stat[512];
        snprintf(stat, sizeof stat,
                 "dev/shm 0:25 1 41777 2 0 0 0 1 1\ndev/shm/data 0:25 2 40700 2 0 0 0 1 1\n%s 0:25 7 100600 "
                 "1 1000 4096 8 1 1\n",
                 escaped);
        snprintf(status, sizeof status, "Name:\tx\nUid:\t%s\t%s\t0\t0\nCapEff:\t00000000000000ff\n",
                 cases[i].uid, cases[i].uid);
        temp_root_write(&temp, cases[i].file, "");
        temp_root_write(&temp, ".capture/stat", stat);
        temp_root_write(&temp, ".capture/env", cases[i].environment);
        temp_root_write(&temp, "proc/self/status", status);
        temp_root_write(&temp, "proc/sys/user/max_user_namespaces", "0\n");
        ShmHints hints;
        private_shm_look(temp_root_open(&temp), &hints);
        if (strcmp(hints.hidden, cases[i].hidden) != 0 || hints.local_ranks != cases[i].ranks)
            fail_msg("case %zu: %s, %u ranks", i, hints.hidden, hints.local_ranks);
        assert_int_equal(hints.capabilities, 0xff);
        assert_int_equal(hints.namespaces_most, 0);
        assert_int_equal(hints.namespaces_free, U64_UNKNOWN);
        temp_root_free(&temp);
    }
}

/* --- For real ----------------------------------------------------------------------------------------- */

enum { PRIVATE_BYTES = 3 << 20, WORKED = 0, NOT_HERE = 77 };

/* Runs `body` in a child process, so that it leaves nothing behind. Its exit code, or 128 + the signal. */
static int elsewhere(int (*body)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void become_nobody(void)
{
    if (geteuid() != 0)
        return;
    gid_t groups[] = {NOBODY, 12345};
    if (setgroups(2, groups) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        _exit(99);
    prctl(PR_SET_DUMPABLE, 1); /* as after the exec of a user's own program */
}

#define CHECK(condition)                                                                                     \
    do                                                                                                       \
        if (!(condition)) {                                                                                  \
            dprintf(STDERR_FILENO, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);         \
            return 1;                                                                                        \
        }                                                                                                    \
    while (0)

/* What the job sees after exec: the same ids, no additional rights, and the mount. */
static const char *const script =
    "set -e\n"
    "test \"$(id -u):$(id -g)\" = \"$1\"\n"
    "test \"$(stat -f -c %T /dev/shm)\" = tmpfs\n"
    "test \"$(stat -c %a /dev/shm)\" = 1777\n"
    "test -z \"$(ls -A /dev/shm)\"\n"
    "grep -q ' /dev/shm rw,nosuid,nodev.* - tmpfs tmpfs rw.*size=3072k' /proc/self/mountinfo\n"
    "! grep -q ' /dev/shm .* shared:' /proc/self/mountinfo\n"
    "test \"$(pwd)\" = /proc\n"
    "test \"$(readlink /proc/self/fd/9)\" = /dev/null\n"
    "if test \"$2\" = user; then\n"
    "    ! grep -E '^Cap(Inh|Prm|Eff|Amb):' /proc/self/status | grep -v '0000000000000000$'\n"
    "    ! umount /dev/shm 2>/dev/null\n"
    "fi\n"
    "test \"$(grep '^CapBnd' /proc/self/status)\" = \"$(grep '^CapBnd' /proc/$PPID/status)\"\n"
    "echo x >/dev/shm/made-inside\n"
    "kill -STOP $$\n"
    "test -s /dev/shm/made-inside\n";

static int become_job(bool user_namespace)
{
    PrivateShm shm = {.answer = SHM_PRIVATE, .user_namespace = user_namespace, .bytes = PRIVATE_BYTES};
    ShmStep step = SHM_STEP_PROCESS;
    char ids[64];
    snprintf(ids, sizeof ids, "%u:%u", geteuid(), getegid());
    CHECK(chdir("/proc") == 0);
    CHECK(dup2(open("/dev/null", O_RDONLY), 9) == 9);
    int groups = getgroups(0, NULL);
    int r = private_shm_enter(&shm, &step);
    if (r < 0) {
        dprintf(STDERR_FILENO, "step %d: %s\n", step, strerror(-r));
        return 1;
    }
    CHECK(getgroups(0, NULL) == groups);
    execl("/bin/sh", "sh", "-c", script, "sh", ids, user_namespace ? "user" : "root", NULL);
    return 1;
}

/* The job stops itself after its checks, so that we can look at it from outside. */
static int watch_job(bool user_namespace)
{
    char path[64];
    struct statfs fs;
    struct statfs before;
    struct statfs after;
    int status = 0;
    CHECK(statfs("/dev/shm", &before) == 0);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(become_job(user_namespace));
    CHECK(waitpid(pid, &status, WUNTRACED) == pid);
    CHECK(WIFSTOPPED(status));

    snprintf(path, sizeof path, "/proc/%d/root/dev/shm", pid);
    CHECK(statfs(path, &fs) == 0 && fs.f_blocks * (uint64_t)fs.f_bsize == PRIVATE_BYTES);
    CHECK(statfs("/dev/shm", &after) == 0 && after.f_blocks == before.f_blocks);
    CHECK(access("/dev/shm/made-inside", F_OK) < 0);
    snprintf(path, sizeof path, "/proc/%d/root/dev/shm/made-inside", pid);
    CHECK(access(path, R_OK) == 0); /* the supervisor can look inside */

    CHECK(kill(pid, SIGCONT) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(access("/dev/shm/made-inside", F_OK) < 0);
    return WORKED;
}

static int watch_root(void)
{
    return watch_job(false);
}

static int watch_user(void)
{
    become_nobody();
    return watch_job(true);
}

/* Root without CAP_SYS_ADMIN must not gain it: the bounding set stays the same. */
static int watch_small_root(void)
{
    enum { SYS_ADMIN = 21 };
    CHECK(prctl(PR_CAPBSET_DROP, SYS_ADMIN, 0, 0, 0) == 0);
    PrivateShm shm = {.answer = SHM_PRIVATE, .user_namespace = true, .bytes = PRIVATE_BYTES};
    ShmStep step = SHM_STEP_PROCESS;
    CHECK(private_shm_enter(&shm, &step) == 0);
    CHECK(prctl(PR_CAPBSET_READ, SYS_ADMIN, 0, 0, 0) == 0);
    execl("/bin/sh", "sh", "-c", "test $(id -u) = 0 && ! umount /dev/shm 2>/dev/null", NULL);
    return 1;
}

static bool may_mount(void)
{
    PrivateShm shm = {.user_namespace = geteuid() != 0, .bytes = PRIVATE_BYTES};
    return private_shm_try(&shm, &(Machine){0}, &(ShmHints){.namespaces_most = 1}) == 0;
}

static int try_as_nobody(void)
{
    become_nobody();
    return may_mount() ? WORKED : NOT_HERE;
}

static void test_real_user(void **state)
{
    (void)state;
    if (elsewhere(try_as_nobody) != WORKED) {
        print_message("needs user namespaces for ordinary users\n");
        skip();
    }
    assert_int_equal(elsewhere(watch_user), WORKED);
}

static void test_real_root(void **state)
{
    (void)state;
    if (geteuid() != 0 || !may_mount()) {
        print_message("needs root and the right to mount\n");
        skip();
    }
    assert_int_equal(elsewhere(watch_root), WORKED);
    assert_int_equal(elsewhere(watch_small_root), WORKED);
}

static int refused_with(const char *words, uint32_t seccomp)
{
    Machine machine = {.sandbox.seccomp = seccomp};
    ShmHints hints = {.namespaces_most = U64_UNKNOWN, .namespaces_free = U64_UNKNOWN};
    PrivateShm shm = {.answer = SHM_PRIVATE, .user_namespace = true, .bytes = PRIVATE_BYTES};
    Root root;
    CHECK(root_open(NULL, &root) == 0);
    private_shm_look(&root, &hints);
    root_close(&root);
    CHECK(private_shm_try(&shm, &machine, &hints) < 0);
    CHECK(shm.answer == SHM_REFUSED);
    if (!strstr(shm.why, words)) {
        dprintf(STDERR_FILENO, "%s\n", shm.why);
        return 1;
    }
    /* Our own ids must not have changed. */
    CHECK(geteuid() != NOBODY || getuid() == NOBODY);
    return WORKED;
}

static bool file_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool put = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return put;
}

/* Root in a user namespace may set that namespace's limits, so the machine's limits stay as they are. */
static int limit_refuses(void)
{
    char map[64];
    snprintf(map, sizeof map, "0 %u 1", geteuid());
    if (unshare(CLONE_NEWUSER) < 0)
        return NOT_HERE;
    CHECK(file_put("/proc/self/setgroups", "deny"));
    CHECK(file_put("/proc/self/uid_map", map));
    if (!file_put("/proc/sys/user/max_user_namespaces", "0"))
        return NOT_HERE;
    return refused_with("max_user_namespaces is 0", 0);
}

static int filter_install(uint32_t action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_SIZE(code), code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    return 0;
}

static int filter_refuses(void)
{
    become_nobody();
    return filter_install(SECCOMP_RET_ERRNO | EPERM) || refused_with("seccomp", 2);
}

static int filter_kills(void)
{
    become_nobody();
    return filter_install(SECCOMP_RET_KILL_PROCESS) || refused_with("seccomp", 2);
}

static int filter_hides(void)
{
    become_nobody();
    return filter_install(SECCOMP_RET_ERRNO | ENOSYS) || refused_with("no user namespaces", 2);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(elsewhere(filter_refuses), WORKED);
    assert_int_equal(elsewhere(filter_kills), WORKED);
    assert_int_equal(elsewhere(filter_hides), WORKED);
    int r = elsewhere(limit_refuses);
    if (r == NOT_HERE) {
        print_message("needs a user namespace whose limits its root may set\n");
        skip();
    }
    assert_int_equal(r, WORKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decide),    cmocka_unit_test(test_explain),   cmocka_unit_test(test_look),
        cmocka_unit_test(test_real_user), cmocka_unit_test(test_real_root), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
