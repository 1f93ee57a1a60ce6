/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "sandbox.h"
#include "temp-root.h"

static void test_logind(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        Tristate answer;
    } cases[] = {
        {"[Login]\nRemoveIPC=yes\n", YES},
        {"[Login]\nRemoveIPC=no", NO},
        {"[Login]\n RemoveIPC = TRUE \n", YES},
        {"[Login]\nRemoveIPC=off\n", NO},
        {"[Login]\nRemoveIPC=0\nRemoveIPC=1\n", YES},
        {"[Login]\nRemoveIPC=1\nRemoveIPC=0\n", NO},
        {"[Login]\nRemoveIPC=yes\nRemoveIPC=perhaps\n", YES}, /* systemd warns and ignores it */
        {"[Login]\nRemoveIPC=yes\nRemoveIPC=\n", YES},
        {"[Login]\r\nRemoveIPC=no\r\n", NO},
        {"[Other]\nRemoveIPC=yes\n", DONT_KNOW},
        {"[Login]\n[Other]\nRemoveIPC=yes\n", DONT_KNOW},
        {"[Other]\n[Login]\nRemoveIPC=yes\n", YES},
        {"RemoveIPC=yes\n", DONT_KNOW},
        {"[Login]\n#RemoveIPC=yes\n;RemoveIPC=yes\n", DONT_KNOW},
        {"[Login]\nXRemoveIPC=yes\nRemoveIPCX=yes\nremoveipc=yes\n", DONT_KNOW},
        {"[Login]\nNAutoVTs=6 \\\nRemoveIPC=yes\n", DONT_KNOW}, /* continues the line before */
        {"[Login]\nNAutoVTs=6 \\\n# between\nRemoveIPC=yes\nRemoveIPC=no\n", NO},
        {"[Login]\nRemoveIPC", DONT_KNOW},
        {"[Login]\nRemoveIPC=yesyes\n", DONT_KNOW},
        {"[Login", DONT_KNOW},
        {"", DONT_KNOW},
        {"=\n=yes\n\\", DONT_KNOW},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (logind_parse_remove_ipc(text_of(cases[i].text)) != cases[i].answer)
            fail_msg("in: %s", cases[i].text);
    assert_int_equal(logind_parse_remove_ipc((Text){0}), DONT_KNOW);
}

typedef struct Case {
    const char *name;
    const char *files[8][2]; /* path and contents */
    const char *links[4][2]; /* path and target */
    const char *mountinfo;
    ProcStatus self;
} Case;

#define CAP(bit)   (UINT64_C(1) << (bit))
#define SYS_PTRACE CAP(19)
#define SYS_ADMIN  CAP(21)
#define ROOT_EXT4  "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define SHM        "9 1 0:25 / /dev/shm rw,nosuid - tmpfs tmpfs "
#define OWN_PID                                                                                              \
    {                                                                                                        \
        "proc/7/ns/pid", "pid:[4026532001]"                                                                  \
    }
#define INITIAL_PID                                                                                          \
    {                                                                                                        \
        "proc/7/ns/pid", "pid:[4026531836]"                                                                  \
    }
#define INITIAL_USER                                                                                         \
    {                                                                                                        \
        "proc/7/ns/user", "user:[4026531837]"                                                                \
    }
#define INITIAL_CGROUP                                                                                       \
    {                                                                                                        \
        "proc/7/ns/cgroup", "cgroup:[4026531835]"                                                            \
    }

static Sandbox read_case(const Case *c)
{
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_link(&temp, "7", "proc/self");
    for (size_t i = 0; i < ARRAY_SIZE(c->files) && c->files[i][0]; i++)
        temp_root_write(&temp, c->files[i][0], c->files[i][1]);
    for (size_t i = 0; i < ARRAY_SIZE(c->links) && c->links[i][0]; i++)
        temp_root_link(&temp, c->links[i][1], c->links[i][0]);
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    Sandbox sandbox;
    assert_int_equal(mounts_parse(text_of(c->mountinfo), &arena, &mounts), 0);
    const Root *root = temp_root_open(&temp);
    sandbox_read(root, &mounts, &c->self, &sandbox);
    assert_int_equal(sandbox.user_namespaces, DONT_KNOW);
    sandbox.user_namespaces = user_namespaces_try(root) ? YES : NO;
    temp_root_free(&temp);
    return sandbox;
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        Case c;
        EnvironmentKind kind;
        const char *runtime;
    } cases[] = {
        {{"a plain machine",
          {{"proc/7/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n"}},
          {INITIAL_PID, INITIAL_USER, INITIAL_CGROUP},
          ROOT_EXT4},
         ENVIRONMENT_BARE,
         ""},
        {{"a machine whose daemons run containers",
          {{"proc/7/cgroup", "0::/system.slice/docker.service\n"}},
          {INITIAL_PID, INITIAL_USER, INITIAL_CGROUP},
          ROOT_EXT4},
         ENVIRONMENT_BARE,
         ""},
        {{"a virtual machine made from an image",
          {{".dockerenv", ""}, {"proc/7/cgroup", "4:memory:/\n0::/\n"}},
          {INITIAL_PID, INITIAL_USER, INITIAL_CGROUP},
          ROOT_EXT4},
         ENVIRONMENT_BARE,
         ""},
        {{"Docker", {{".dockerenv", ""}, {"proc/7/cgroup", "0::/\n"}}, {OWN_PID}, ROOT_EXT4},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"Docker with --pid=host, version 2",
          {{".dockerenv", ""}, {"proc/7/cgroup", "0::/\n"}},
          {INITIAL_PID, INITIAL_USER, {"proc/7/ns/cgroup", "cgroup:[4026532500]"}},
          ROOT_EXT4},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"Docker with --pid=host, version 1",
          {{".dockerenv", ""}, {"proc/7/cgroup", "4:memory:/docker/abc\n"}},
          {INITIAL_PID, INITIAL_USER, INITIAL_CGROUP},
          ROOT_EXT4},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"Docker without its file",
          {{"proc/7/cgroup", "0::/\n"}},
          {OWN_PID},
          "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A,upperdir=/x\n"},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"Docker with containerd's layers",
          {{"proc/7/cgroup", "0::/\n"}},
          {OWN_PID},
          "1 0 0:50 / / rw - overlay overlay "
          "rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/x\n"
          "2 1 8:1 /var/lib/docker/containers/abc/hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"Docker, told by systemd's group",
          {{"proc/7/cgroup", "0::/system.slice/docker-abc.scope\n"}},
          {OWN_PID},
          ""},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"containerd alone",
          {{"proc/7/cgroup", "0::/\n"}},
          {OWN_PID},
          "1 0 0:50 / / rw - overlay overlay "
          "rw,lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/x\n"},
         ENVIRONMENT_UNKNOWN,
         "containerd"},
        {{"Podman", {{"run/.containerenv", "engine=\"podman-4.3.1\"\n"}}, {OWN_PID}, ""},
         ENVIRONMENT_PODMAN,
         "podman"},
        {{"Podman by its variable", {{".capture/env", "container=podman\n"}}, {OWN_PID}, ""},
         ENVIRONMENT_PODMAN,
         "podman"},
        {{"Podman by its group", {{"proc/7/cgroup", "0::/machine.slice/libpod-abc.scope\n"}}, {OWN_PID}, ""},
         ENVIRONMENT_PODMAN,
         "podman"},
        {{"Kubernetes by its variable",
          {{".capture/env", "KUBERNETES_SERVICE_HOST=10.0.0.1\n"}, {".dockerenv", ""}},
          {OWN_PID},
          ""},
         ENVIRONMENT_KUBERNETES,
         "docker"},
        {{"Kubernetes by its token",
          {{"var/run/secrets/kubernetes.io/serviceaccount/token", ""}},
          {OWN_PID},
          ""},
         ENVIRONMENT_KUBERNETES,
         ""},
        {{"Kubernetes by its group",
          {{"proc/7/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope\n"}},
          {OWN_PID},
          ""},
         ENVIRONMENT_KUBERNETES,
         "containerd"},
        {{"Kubernetes by its hosts file",
          {{"proc/7/cgroup", "0::/\n"}, {"run/.containerenv", ""}},
          {OWN_PID},
          "1 0 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/A\n"
          "2 1 8:1 /var/lib/kubelet/pods/1-2/etc-hosts /etc/hosts rw - ext4 /dev/sda1 rw\n"},
         ENVIRONMENT_KUBERNETES,
         "cri-o"},
        {{"LXC by systemd", {{"run/systemd/container", "lxc\n"}}, {OWN_PID}, ""}, ENVIRONMENT_LXC, "lxc"},
        {{"LXC by pid 1's group",
          {{"proc/7/cgroup", "0::/\n"}, {"proc/1/cgroup", "0::/lxc.payload.guest/init.scope\n"}},
          {OWN_PID},
          ""},
         ENVIRONMENT_LXC,
         "lxc"},
        {{"LXC by its meminfo",
          {{"proc/7/cgroup", "0::/\n"}},
          {OWN_PID},
          ROOT_EXT4 "2 1 0:21 / /proc rw - proc proc rw\n"
                    "3 2 0:60 /proc/meminfo /proc/meminfo rw - fuse.lxcfs lxcfs rw\n"},
         ENVIRONMENT_LXC,
         "lxc"},
        {{"LXD", {{"dev/lxd/sock", ""}}, {OWN_PID}, ""}, ENVIRONMENT_LXC, "lxc"},
        {{"Docker in an LXC guest", {{".dockerenv", ""}, {"run/systemd/container", "lxc\n"}}, {OWN_PID}, ""},
         ENVIRONMENT_DOCKER,
         "docker"},
        {{"some container", {{".capture/env", "container=oci\n"}}, {INITIAL_PID}, ""},
         ENVIRONMENT_UNKNOWN,
         ""},
        {{"no evidence, but not the machine's processes",
          {{"proc/7/cgroup", "0::/\n"}},
          {OWN_PID},
          ROOT_EXT4},
         ENVIRONMENT_UNKNOWN,
         ""},
        {{"no evidence of anything", {{0}}, {{0}}, ""}, ENVIRONMENT_UNKNOWN, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Sandbox sandbox = read_case(&cases[i].c);
        if (sandbox.kind != cases[i].kind || strcmp(sandbox.runtime, cases[i].runtime) != 0)
            fail_msg("%s: %s, runtime \"%s\"", cases[i].c.name, environment_name(sandbox.kind),
                     sandbox.runtime);
    }
}

static void test_slurm(void **state)
{
    (void)state;
    static const struct {
        Case c;
        bool slurm;
    } cases[] = {
        {{"by variable", {{".capture/env", "SLURM_JOB_ID=7\n"}}, {{0}}, ""}, true},
        {{"version 1", {{"proc/7/cgroup", "4:memory:/slurm/uid_1000/job_7/step_0/task_0\n"}}, {{0}}, ""},
         true},
        {{"version 2",
          {{"proc/7/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0/user\n"}},
          {{0}},
          ""},
         true},
        {{"the daemon", {{"proc/7/cgroup", "0::/system.slice/slurmd.service\n"}}, {{0}}, ""}, false},
        {{"another scheduler", {{"proc/7/cgroup", "0::/pbs/job_7\n"}}, {{0}}, ""}, false},
        {{"none", {{0}}, {{0}}, ""}, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (read_case(&cases[i].c).slurm != cases[i].slurm)
            fail_msg("%s", cases[i].c.name);
}

static void test_remount(void **state)
{
    (void)state;
    static const struct {
        Case c;
        bool can_remount;
    } cases[] = {
        {{"root of the machine", {{0}}, {INITIAL_USER}, SHM "rw,size=64k\n", {.caps_effective = SYS_ADMIN}},
         true},
        {{"no capability", {{0}}, {INITIAL_USER}, SHM "rw\n", {.caps_effective = ~SYS_ADMIN}}, false},
        {{"no mount", {{0}}, {INITIAL_USER}, ROOT_EXT4, {.caps_effective = SYS_ADMIN}}, false},
        {{"not a tmpfs",
          {{0}},
          {INITIAL_USER},
          "9 1 8:1 /shm /dev/shm rw - ext4 /dev/sda1 rw\n",
          {.caps_effective = SYS_ADMIN}},
         false},
        {{"read-only", {{0}}, {INITIAL_USER}, SHM "ro\n", {.caps_effective = SYS_ADMIN}}, false},
        {{"root of a user namespace, somebody else's mount",
          {{0}},
          {{"proc/7/ns/user", "user:[4026532178]"}},
          SHM "rw,size=64k\n",
          {.caps_effective = SYS_ADMIN}},
         false},
        {{"root of a user namespace, its own mount",
          {{0}},
          {{"proc/7/ns/user", "user:[4026532178]"}},
          SHM "rw,size=64k,uid=1000,gid=1000\n",
          {.caps_effective = SYS_ADMIN}},
         true},
        {{"under Docker's AppArmor profile",
          {{"proc/7/attr/current", "docker-default (enforce)\n"}},
          {INITIAL_USER},
          SHM "rw\n",
          {.caps_effective = SYS_ADMIN}},
         false},
        {{"AppArmor without a profile",
          {{"proc/7/attr/current", "unconfined\n"}},
          {INITIAL_USER},
          SHM "rw\n",
          {.caps_effective = SYS_ADMIN}},
         true},
        {{"under SELinux",
          {{"proc/7/attr/current", "system_u:system_r:container_t:s0:c1,c2"}},
          {INITIAL_USER},
          SHM "rw\n",
          {.caps_effective = SYS_ADMIN}},
         false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (read_case(&cases[i].c).can_remount != cases[i].can_remount)
            fail_msg("%s", cases[i].c.name);
}

static void test_sees_all(void **state)
{
    (void)state;
#define PROC "2 1 0:21 / /proc rw - proc proc rw"
    static const struct {
        Case c;
        bool hidepid;
        bool sees_all;
    } cases[] = {
        {{"nothing hidden", {{0}}, {INITIAL_PID}, PROC "\n", {.euid = 1000}}, false, true},
        {{"another namespace", {{0}}, {OWN_PID}, PROC "\n", {.euid = 1000}}, false, false},
        {{"listed, but nothing is told of them", {{0}}, {INITIAL_PID}, PROC ",hidepid=1\n", {.euid = 1000}},
         true,
         false},
        {{"hidden", {{0}}, {INITIAL_PID}, PROC ",gid=5,hidepid=2\n", {.euid = 1000}}, true, false},
        {{"hidden, by name", {{0}}, {INITIAL_PID}, PROC ",hidepid=invisible\n", {.euid = 1000}}, true, false},
        {{"hidden from all", {{0}}, {INITIAL_PID}, PROC ",hidepid=ptraceable\n", {.euid = 1000}},
         true,
         false},
        {{"not from root",
          {{0}},
          {INITIAL_PID, INITIAL_USER},
          PROC ",hidepid=2\n",
          {.euid = 0, .caps_effective = SYS_PTRACE}},
         false,
         true},
        {{"from the root of a user namespace",
          {{0}},
          {INITIAL_PID},
          PROC ",hidepid=2\n",
          {.euid = 0, .caps_effective = SYS_PTRACE}},
         true,
         false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Sandbox sandbox = read_case(&cases[i].c);
        if (sandbox.hidepid != cases[i].hidepid || sandbox.sees_all != cases[i].sees_all)
            fail_msg("%s", cases[i].c.name);
    }
}

static void test_user_namespaces(void **state)
{
    (void)state;
#define MAX_USERNS "proc/sys/user/max_user_namespaces"
#define CLONE      "proc/sys/kernel/unprivileged_userns_clone"
#define APPARMOR   "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    static const struct {
        Case c;
        Tristate user_namespaces;
    } cases[] = {
        {{"as upstream", {{MAX_USERNS, "63000\n"}}, {{0}}, ""}, YES},
        {{"none allowed", {{MAX_USERNS, "0\n"}}, {{0}}, ""}, NO},
        {{"a kernel without", {{0}}, {{0}}, ""}, NO},
        {{"Debian's switch, off", {{MAX_USERNS, "1\n"}, {CLONE, "0\n"}}, {{0}}, ""}, NO},
        {{"Debian's switch, on", {{MAX_USERNS, "1\n"}, {CLONE, "1\n"}}, {{0}}, ""}, YES},
        {{"Ubuntu's switch, on", {{MAX_USERNS, "1\n"}, {APPARMOR, "1\n"}}, {{0}}, ""}, NO},
        {{"Ubuntu's switch, off", {{MAX_USERNS, "1\n"}, {APPARMOR, "0\n"}}, {{0}}, ""}, YES},
        {{"garbage", {{MAX_USERNS, "many\n"}}, {{0}}, ""}, NO},
        {{"tried and refused",
          {{MAX_USERNS, "1\n"}, {".capture/tried", "memfd 1\nuser_namespaces 0\n"}},
          {{0}},
          ""},
         NO},
        {{"tried and done", {{".capture/tried", "user_namespaces 1\n"}}, {{0}}, ""}, YES},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (read_case(&cases[i].c).user_namespaces != cases[i].user_namespaces)
            fail_msg("%s", cases[i].c.name);
}

static void test_memfd(void **state)
{
    (void)state;
    Case nothing = {.mountinfo = ""};
    assert_true(read_case(&nothing).memfd);
    Case refused = {.files = {{".capture/tried", "memfd 0\n"}}, .mountinfo = ""};
    assert_false(read_case(&refused).memfd);
}

static void test_remove_ipc(void **state)
{
    (void)state;
#define YES_TEXT "[Login]\nRemoveIPC=yes\n"
#define NO_TEXT  "[Login]\nRemoveIPC=no\n"
#define USER                                                                                                 \
    {                                                                                                        \
        ".capture/ids", "1000\n"                                                                             \
    }
#define BOOTED                                                                                               \
    {                                                                                                        \
        "run/systemd/system/x", ""                                                                           \
    }
    static const struct {
        Case c;
        Tristate remove_ipc;
    } cases[] = {
        {{"no systemd", {USER}, {{0}}, ""}, NO},
        {{"nothing set", {USER, BOOTED, {"etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\n"}}, {{0}}, ""},
         DONT_KNOW},
        {{"nothing set, no systemd",
          {USER, {"etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\n"}},
          {{0}},
          ""},
         NO},
        {{"yes", {USER, BOOTED, {"etc/systemd/logind.conf", YES_TEXT}}, {{0}}, ""}, YES},
        {{"no", {USER, BOOTED, {"etc/systemd/logind.conf", NO_TEXT}}, {{0}}, ""}, NO},
        {{"yes, but root",
          {{".capture/ids", "0\n"}, BOOTED, {"etc/systemd/logind.conf", YES_TEXT}},
          {{0}},
          ""},
         NO},
        {{"yes, but a system user",
          {{".capture/ids", "999\n"}, BOOTED, {"etc/systemd/logind.conf", YES_TEXT}},
          {{0}},
          ""},
         NO},
        {{"a drop-in is read after the file",
          {USER,
           BOOTED,
           {"etc/systemd/logind.conf", YES_TEXT},
           {"usr/lib/systemd/logind.conf.d/a.conf", NO_TEXT}},
          {{0}},
          ""},
         NO},
        {{"drop-ins go by name, not by place",
          {USER,
           BOOTED,
           {"etc/systemd/logind.conf.d/a.conf", NO_TEXT},
           {"usr/lib/systemd/logind.conf.d/b.conf", YES_TEXT}},
          {{0}},
          ""},
         YES},
        {{"of one name, /etc has the only one",
          {USER,
           BOOTED,
           {"etc/systemd/logind.conf.d/a.conf", ""},
           {"usr/lib/systemd/logind.conf.d/a.conf", YES_TEXT}},
          {{0}},
          ""},
         DONT_KNOW},
        {{"other names do not count",
          {USER,
           BOOTED,
           {"etc/systemd/logind.conf.d/a.conf.bak", YES_TEXT},
           {"run/systemd/logind.conf.d/.conf", YES_TEXT}},
          {{0}},
          ""},
         DONT_KNOW},
        {{"the vendor's file, when /etc has none",
          {USER, BOOTED, {"usr/lib/systemd/logind.conf", YES_TEXT}},
          {{0}},
          ""},
         YES},
        {{"/etc hides the vendor's file",
          {USER, BOOTED, {"etc/systemd/logind.conf", ""}, {"usr/lib/systemd/logind.conf", YES_TEXT}},
          {{0}},
          ""},
         DONT_KNOW},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Tristate answer = read_case(&cases[i].c).remove_ipc;
        if (answer != cases[i].remove_ipc)
            fail_msg("%s: %d instead of %d", cases[i].c.name, (int)answer, (int)cases[i].remove_ipc);
    }
}

static void test_rights(void **state)
{
    (void)state;
    Case c = {
        .links = {INITIAL_USER},
        .mountinfo = "",
        .self = {.uid = 1000, .euid = 0, .caps_effective = SYS_ADMIN, .seccomp = 2, .no_new_privs = true}};
    Sandbox sandbox = read_case(&c);
    assert_true(sandbox.root);
    assert_true(sandbox.sys_admin);
    assert_true(sandbox.initial_userns);
    assert_false(sandbox.initial_pidns);
    assert_int_equal(sandbox.seccomp, 2);
    assert_true(sandbox.no_new_privs);
    c.self = (ProcStatus){.uid = 0, .euid = 1000};
    sandbox = read_case(&c);
    assert_false(sandbox.root);
    assert_false(sandbox.sys_admin);
}

/* On any machine, the answers must be consistent, and no child process may be left behind. */
static void test_live(void **state)
{
    (void)state;
    Root root;
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    ProcStatus self;
    Sandbox sandbox;
    assert_int_equal(root_open("/", &root), 0);
    assert_int_equal(mounts_read(&root, 0, &arena, &mounts), 0);
    assert_int_equal(proc_status_read(&root, 0, &self), 0);
    sandbox_read(&root, &mounts, &self, &sandbox);
    (void)user_namespaces_try(&root); /* forks a child, which must be reaped */
    assert_int_equal(sandbox.root, geteuid() == 0);
    assert_true(sandbox.memfd);
    if (sandbox.can_remount)
        assert_true(sandbox.sys_admin);
    assert_non_null(environment_name(sandbox.kind));
    assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    root_close(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logind),   cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_slurm),    cmocka_unit_test(test_remount),
        cmocka_unit_test(test_sees_all), cmocka_unit_test(test_user_namespaces),
        cmocka_unit_test(test_memfd),    cmocka_unit_test(test_remove_ipc),
        cmocka_unit_test(test_rights),   cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
