/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "advice.h"

static const GuardOffer ready = {.ready = true};
static const GuardOffer broken = {.why_not = "the preload library is missing"};

/* The fix whose command contains the text, or NULL. */
static const Fix *fix_with(const Fixes *fixes, const char *text)
{
    for (size_t i = 0; i < fixes->n; i++)
        if (fixes->items[i].command && strstr(fixes->items[i].command, text))
            return &fixes->items[i];
    return NULL;
}

static void assert_sentences(const Fixes *fixes)
{
    for (size_t i = 0; i < fixes->n; i++) {
        const char *what = fixes->items[i].what;
        assert_true(strlen(what) > 5 && strlen(what) < 200);
        assert_int_equal(what[strlen(what) - 1], '.');
        assert_null(strchr(what, '\n'));
    }
}

static void test_rank(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Fixes fixes = {0};
    static const struct {
        FixNeeds needs;
        const char *what;
    } added[] = {{NEEDS_ADMIN, "1"}, {NEEDS_ROOT, "2"},    {NEEDS_NOTHING, "3"}, {NEEDS_RESTART, "4"},
                 {NEEDS_ROOT, "5"},  {NEEDS_NOTHING, "6"}, {NEEDS_ADMIN, "7"}};
    static const char *const ranked[] = {"3", "6", "2", "5", "4", "1", "7"};
    char reused[2] = {0};
    for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
        reused[0] = added[i].what[0]; /* fix_add keeps a copy */
        assert_int_equal(fix_add(&f->arena, &fixes, added[i].needs, reused, NULL), 0);
    }
    fixes_rank(&fixes);
    for (size_t i = 0; i < ARRAY_SIZE(ranked); i++)
        assert_string_equal(fixes.items[i].what, ranked[i]);
    fixes_rank(&(Fixes){0});
    assert_string_equal(fix_needs_name(NEEDS_NOTHING), "nothing");
    assert_string_equal(fix_needs_name(NEEDS_ROOT), "root");
    assert_string_equal(fix_needs_name(NEEDS_RESTART), "restart");
    assert_string_equal(fix_needs_name(NEEDS_ADMIN), "admin");
    fixture_free(f);
}

static void test_quote(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        const char *quoted;
    } cases[] = {
        {"/home/ada", "/home/ada"},
        {"", "''"},
        {"a b", "'a b'"},
        {"it's", "'it'\\''s'"},
        {"$(x)", "'$(x)'"},
        {"数据", "'数据'"},
        {"user-1000.slice", "user-1000.slice"},
    };
    Fixture *f = fixture_new();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(shell_quote(&f->arena, text_of(cases[i].word)), cases[i].quoted);
    fixture_free(f);
}

typedef struct Place {
    EnvironmentKind kind;
    bool slurm;
    bool root;
    bool can_remount;
    bool no_new_privs;
    bool sys_admin;
    bool nested_userns; /* in a user namespace that is not the machine's */
    ShmOwner owner;
} Place;

static void place_set(Fixture *f, Place place)
{
    Sandbox *sandbox = &f->survey.machine.sandbox;
    sandbox->kind = place.kind;
    sandbox->slurm = place.slurm;
    sandbox->root = place.root;
    sandbox->can_remount = place.can_remount;
    sandbox->no_new_privs = place.no_new_privs;
    sandbox->sys_admin = place.sys_admin;
    sandbox->initial_userns = !place.nested_userns;
    f->survey.machine.shm.owner = place.owner;
    f->survey.machine.uid = place.root ? 0 : 1000;
}

/* Which command is offered where, and what it needs. */
static void test_shm_size(void **state)
{
    (void)state;
    static const struct {
        Place place;
        const char *command;
        int needs; /* -1: must not be offered */
    } cases[] = {
        {{ENVIRONMENT_BARE}, "sudo mount -o remount,size=8g /dev/shm", NEEDS_ROOT},
        {{ENVIRONMENT_BARE}, "| sudo tee -a /etc/fstab", NEEDS_ROOT},
        {{ENVIRONMENT_BARE}, "docker", -1},
        {{ENVIRONMENT_BARE, .no_new_privs = true}, "mount -o remount,size=8g /dev/shm", NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .root = true, .can_remount = true}, "sudo", -1},
        {{ENVIRONMENT_BARE, .root = true, .can_remount = true},
         "mount -o remount,size=8g /dev/shm",
         NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true, .can_remount = true},
         "echo 'tmpfs /dev/shm tmpfs rw,nosuid,nodev,mode=1777,size=8g 0 0' | tee -a /etc/fstab",
         NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true}, "sudo mount -o remount,size=8g /dev/shm", NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .root = true, .can_remount = true, .nested_userns = true},
         "mount -o remount,nosuid,nodev,size=8g tmpfs /dev/shm",
         NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true, .can_remount = true, .nested_userns = true},
         "| sudo tee -a /etc/fstab",
         NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .root = true, .nested_userns = true},
         "sudo mount -o remount,size=8g /dev/shm",
         NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .slurm = true}, "sudo mount -o remount,size=8g /dev/shm", NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .slurm = true}, "sbatch --exclusive", NEEDS_RESTART},
        {{ENVIRONMENT_BARE, .slurm = true, .owner = SHM_OF_JOB},
         "nsenter --mount=\"$SLURM_NS\" mount -o remount,size=8g /dev/shm",
         NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .slurm = true, .owner = SHM_OF_JOB}, "sbatch --exclusive", -1},
        {{ENVIRONMENT_BARE, .slurm = true, .owner = SHM_OF_JOB}, "fstab", -1},
        {{ENVIRONMENT_DOCKER}, "docker run --shm-size=8g IMAGE COMMAND", NEEDS_RESTART},
        {{ENVIRONMENT_DOCKER}, "shm_size: 8g", NEEDS_RESTART},
        {{ENVIRONMENT_DOCKER}, "mount -o", -1},
        {{ENVIRONMENT_DOCKER, .root = true}, "mount -o", -1},
        {{ENVIRONMENT_DOCKER, .root = true}, "fstab", -1},
        {{ENVIRONMENT_DOCKER, .root = true, .can_remount = true},
         "mount -o remount,size=8g /dev/shm",
         NEEDS_ROOT},
        {{ENVIRONMENT_DOCKER, .root = true, .can_remount = true}, "fstab", -1},
        {{ENVIRONMENT_DOCKER, .root = true, .sys_admin = true}, "mount -o", -1},
        {{ENVIRONMENT_PODMAN}, "podman run --shm-size=8g IMAGE COMMAND", NEEDS_RESTART},
        {{ENVIRONMENT_PODMAN}, "docker", -1},
        {{ENVIRONMENT_KUBERNETES}, "medium: Memory\n      sizeLimit: 8Gi", NEEDS_RESTART},
        {{ENVIRONMENT_KUBERNETES}, "mountPath: /dev/shm", NEEDS_RESTART},
        {{ENVIRONMENT_KUBERNETES, .root = true}, "mount -o", -1},
        {{ENVIRONMENT_LXC}, "sudo mount -o remount,size=8g /dev/shm", NEEDS_ROOT},
        {{ENVIRONMENT_LXC, .root = true}, "mount -o", -1},
        {{ENVIRONMENT_LXC, .root = true}, "lxc.mount.entry = tmpfs dev/shm tmpfs", NEEDS_ADMIN},
        {{ENVIRONMENT_UNKNOWN}, "--shm-size=8g", NEEDS_RESTART},
        {{ENVIRONMENT_UNKNOWN}, "mount -o", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        f->survey.machine.shm.size_bytes = 64 * MIB;
        f->survey.machine.shm.used_bytes = 60 * MIB;
        place_set(f, cases[i].place);
        assert_int_equal(advise_shm_size(&f->survey.machine, &ready, 8 * GIB, &f->arena, &fixes), 0);
        fixes_rank(&fixes);
        assert_sentences(&fixes);
        assert_string_equal(fixes.items[0].command, "shmguard run -- python train.py");
        const Fix *fix = fix_with(&fixes, cases[i].command);
        if (!fix != (cases[i].needs < 0) || (fix && (int)fix->needs != cases[i].needs))
            fail_msg("case %zu: %s %s", i, cases[i].command,
                     fix ? fix_needs_name(fix->needs) : "not offered");
        fixture_free(f);
    }
}

static void test_shm_size_limits(void **state)
{
    (void)state;
    static const struct {
        uint64_t total;
        uint64_t limit;
        uint64_t size;
        uint64_t wanted;
        const char *flag; /* NULL: no larger mount is offered */
        bool capped;
    } cases[] = {
        {64 * GIB, U64_UNKNOWN, 64 * MIB, 8 * GIB, "size=8g", false},
        {64 * GIB, U64_UNKNOWN, 64 * MIB, 32 * GIB, "size=32g", false},
        {64 * GIB, U64_UNKNOWN, 64 * MIB, 33 * GIB, "size=32g", true},
        {64 * GIB, 5 * GIB, 64 * MIB, 8 * GIB, "size=2g", true},
        {64 * GIB, 900 * MIB, 64 * MIB, 8 * GIB, "size=448m", true},
        {64 * GIB, U64_UNKNOWN, 32 * GIB, 40 * GIB, NULL, true},
        {64 * GIB, U64_UNKNOWN, 16 * GIB, 8 * GIB, NULL, false},
        {64 * GIB, U64_UNKNOWN, 0, 8 * GIB, NULL, false}, /* no limit */
        {U64_UNKNOWN, U64_UNKNOWN, 64 * MIB, 100 * GIB, "size=100g", false},
        {64 * GIB, 0, 1 * MIB, 8 * GIB, "size=64m", true},
        {64 * GIB, U64_UNKNOWN, 64 * MIB, UINT64_MAX - 1, "size=32g", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        Machine *machine = &f->survey.machine;
        machine->memory.total_bytes = cases[i].total;
        machine->cgroup.memory_limit_bytes = cases[i].limit;
        machine->shm.size_bytes = cases[i].size;
        assert_int_equal(advise_shm_mount(machine, cases[i].wanted, &f->arena, &fixes), 0);
        const Fix *fix = fix_with(&fixes, "size=");
        assert_true(!fix == !cases[i].flag);
        if (fix)
            assert_non_null(strstr(fix->command, cases[i].flag));
        assert_true((fixes.n > 0 && strstr(fixes.items[0].what, "half of the memory")) == cases[i].capped);
        fixture_free(f);
    }
}

static void test_shm_absent(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Fixes fixes = {0};
    f->survey.machine.shm = (ShmMount){.state = SHM_ABSENT};
    assert_int_equal(advise_shm_mount(&f->survey.machine, 8 * GIB, &f->arena, &fixes), 0);
    assert_non_null(fix_with(&fixes, "sudo mkdir -p /dev/shm && sudo mount -t tmpfs -o "
                                     "rw,nosuid,nodev,mode=1777,size=8g tmpfs /dev/shm"));
    fixture_free(f);
}

static void test_shm_writable(void **state)
{
    (void)state;
    static const struct {
        Place place;
        bool read_only;
        const char *command;
        int needs;
    } cases[] = {
        {{ENVIRONMENT_BARE}, true, "sudo mount -o remount,rw /dev/shm", NEEDS_ROOT},
        {{ENVIRONMENT_BARE}, false, "sudo chmod 1777 /dev/shm", NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true, .sys_admin = true},
         true,
         "mount -o remount,rw /dev/shm",
         NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true}, true, "sudo mount -o remount,rw /dev/shm", NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER, .root = true, .sys_admin = true},
         true,
         "mount -o remount,rw /dev/shm",
         NEEDS_ROOT},
        {{ENVIRONMENT_DOCKER}, true, NULL, NEEDS_RESTART},
        {{ENVIRONMENT_DOCKER}, false, "sudo chmod 1777 /dev/shm", NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER, .root = true}, false, "chmod 1777 /dev/shm", NEEDS_ROOT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        place_set(f, cases[i].place);
        f->survey.machine.shm.read_only = cases[i].read_only;
        f->survey.machine.shm.no_access = !cases[i].read_only;
        assert_int_equal(advise_shm_writable(&f->survey.machine, &f->arena, &fixes), 0);
        assert_int_equal(fixes.n, 1);
        assert_int_equal(fixes.items[0].needs, cases[i].needs);
        if (cases[i].command)
            assert_string_equal(fixes.items[0].command, cases[i].command);
        else
            assert_null(fixes.items[0].command);
        assert_sentences(&fixes);
        fixture_free(f);
    }
}

static void test_guard(void **state)
{
    (void)state;
    static const EnvironmentKind kinds[] = {ENVIRONMENT_BARE,       ENVIRONMENT_DOCKER, ENVIRONMENT_PODMAN,
                                            ENVIRONMENT_KUBERNETES, ENVIRONMENT_LXC,    ENVIRONMENT_UNKNOWN};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        f->survey.machine.sandbox.kind = kinds[i];
        f->survey.machine.shm.size_bytes = 64 * MIB;
        assert_int_equal(advise_shm_size(&f->survey.machine, &broken, GIB, &f->arena, &fixes), 0);
        assert_null(fix_with(&fixes, "shmguard run"));
        assert_true(fixes.n > 1);
        fixture_free(f);
    }
}

static void test_less_memory(void **state)
{
    (void)state;
    static const struct {
        Place place;
        uint64_t limit;
        const char *group;
        const char *command;
        int needs;
    } cases[] = {
        {{ENVIRONMENT_DOCKER}, 8 * GIB, "/", "docker run --memory=16g IMAGE COMMAND", NEEDS_RESTART},
        {{ENVIRONMENT_DOCKER}, 8 * GIB, "/", "docker update --memory=16g --memory-swap=16g", NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER}, 60 * GIB, "/", "docker", -1}, /* the machine has no more */
        {{ENVIRONMENT_DOCKER}, U64_UNKNOWN, "", "docker", -1},
        {{ENVIRONMENT_PODMAN}, 8 * GIB, "/", "podman run --memory=16g", NEEDS_RESTART},
        {{ENVIRONMENT_KUBERNETES}, 8 * GIB, "/", "limits:\n        memory: 16Gi", NEEDS_RESTART},
        {{ENVIRONMENT_LXC}, 8 * GIB, "/", "lxc config set CONTAINER limits.memory=16384MiB", NEEDS_ADMIN},
        {{ENVIRONMENT_BARE, .slurm = true},
         8 * GIB,
         "/slurm/job_1",
         "sbatch --mem=16384M job.sh",
         NEEDS_RESTART},
        {{ENVIRONMENT_BARE, .slurm = true},
         U64_UNKNOWN,
         "",
         "sbatch --exclusive --mem=0 job.sh",
         NEEDS_RESTART},
        {{ENVIRONMENT_BARE},
         8 * GIB,
         "/user.slice/user-1000.slice",
         "sudo systemctl set-property --runtime user-1000.slice MemoryMax=16384M",
         NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true},
         8 * GIB,
         "/system.slice/a\\x2db.service",
         "systemctl set-property --runtime 'a\\x2db.service' MemoryMax=16384M",
         NEEDS_ROOT},
        {{ENVIRONMENT_BARE}, 8 * GIB, "/user.slice/user@1000.service/app.slice", "systemctl", -1},
        {{ENVIRONMENT_BARE}, 8 * GIB, "/lab/mine", "systemctl", -1},
        {{ENVIRONMENT_BARE}, 8 * GIB, "", "systemctl", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        place_set(f, cases[i].place);
        f->survey.machine.cgroup.memory_limit_bytes = cases[i].limit;
        snprintf(f->survey.machine.cgroup.limited_by, sizeof f->survey.machine.cgroup.limited_by, "%s",
                 cases[i].group);
        assert_int_equal(advise_less_memory(&f->survey.machine, &f->arena, &fixes), 0);
        assert_int_equal(fixes.items[0].needs, NEEDS_NOTHING);
        assert_sentences(&fixes);
        const Fix *fix = fix_with(&fixes, cases[i].command);
        if (!fix != (cases[i].needs < 0) || (fix && (int)fix->needs != cases[i].needs))
            fail_msg("case %zu: %s %s", i, cases[i].command, fix ? fix->command : "not offered");
        fixture_free(f);
    }
}

static void test_open_files(void **state)
{
    (void)state;
    static const struct {
        Place place;
        uint64_t soft;
        uint64_t hard;
        const char *command;
        int needs;
    } cases[] = {
        {{ENVIRONMENT_BARE}, 1024, 1048576, "ulimit -n 65536", NEEDS_NOTHING},
        {{ENVIRONMENT_BARE}, 1024, RLIMIT_UNLIMITED, "ulimit -n 65536", NEEDS_NOTHING},
        {{ENVIRONMENT_BARE}, 1024, 4096, "ulimit -n 4096", NEEDS_NOTHING},
        {{ENVIRONMENT_BARE}, 65536, 1048576, "ulimit -n 262144", NEEDS_NOTHING},
        {{ENVIRONMENT_BARE}, 1024, 1048576, "limits.d", -1},
        {{ENVIRONMENT_BARE}, 4096, 4096, "ulimit", -1},
        {{ENVIRONMENT_BARE}, 4096, 4096, "| sudo tee /etc/security/limits.d/90-nofile.conf", NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .slurm = true}, 4096, 4096, "/etc/security/limits.d", NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER}, 1024, 4096, "docker run --ulimit nofile=65536:65536", NEEDS_RESTART},
        {{ENVIRONMENT_PODMAN}, 1024, 4096, "podman run --ulimit nofile=65536:65536", NEEDS_RESTART},
        {{ENVIRONMENT_KUBERNETES}, 1024, 4096, "docker", -1},
        {{ENVIRONMENT_BARE}, U64_UNKNOWN, U64_UNKNOWN, "ulimit", -1},
        {{ENVIRONMENT_BARE}, RLIMIT_UNLIMITED, RLIMIT_UNLIMITED, "ulimit", -1},
        {{ENVIRONMENT_BARE}, 1024, 1048576, "set_sharing_strategy('file_system')", NEEDS_NOTHING},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        place_set(f, cases[i].place);
        f->survey.machine.limits =
            (RLimits){.open_files_soft = cases[i].soft, .open_files_hard = cases[i].hard};
        assert_int_equal(advise_open_files(&f->survey.machine, &f->arena, &fixes), 0);
        assert_sentences(&fixes);
        const Fix *fix = fix_with(&fixes, cases[i].command);
        if (!fix != (cases[i].needs < 0) || (fix && (int)fix->needs != cases[i].needs))
            fail_msg("case %zu: %s %s", i, cases[i].command, fix ? fix->command : "not offered");
        fixture_free(f);
    }
}

static void test_kernel_settings(void **state)
{
    (void)state;
    static const struct {
        Place place;
        uint64_t now;
        const char *command;
        FixNeeds needs;
    } cases[] = {
        {{ENVIRONMENT_BARE}, 65530, "sudo sysctl -w vm.max_map_count=262144", NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .root = true}, 262144, "sysctl -w vm.max_map_count=1048576", NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .slurm = true}, 65530, "sudo sysctl -w vm.max_map_count=262144", NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER, .root = true}, 65530, "sudo sysctl -w vm.max_map_count=262144", NEEDS_ADMIN},
        {{ENVIRONMENT_KUBERNETES}, U64_UNKNOWN, "sudo sysctl -w vm.max_map_count=262144", NEEDS_ADMIN},
        {{ENVIRONMENT_BARE}, UINT64_MAX - 1, "sudo sysctl -w vm.max_map_count=2147483644", NEEDS_ROOT},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Fixes fixes = {0};
        place_set(f, cases[i].place);
        f->survey.machine.max_map_count = cases[i].now;
        assert_int_equal(advise_max_map_count(&f->survey.machine, &f->arena, &fixes), 0);
        const Fix *fix = fix_with(&fixes, "sysctl -w");
        assert_string_equal(fix->command, cases[i].command);
        assert_int_equal(fix->needs, cases[i].needs);
        assert_int_equal(fix_with(&fixes, "/etc/sysctl.d/")->needs, cases[i].needs);
        assert_sentences(&fixes);
        fixture_free(f);
    }
}

static void test_remove_ipc(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Fixes fixes = {0};
    assert_int_equal(advise_remove_ipc(&f->survey.machine, &f->arena, &fixes), 0);
    assert_string_equal(fixes.items[0].command, "loginctl enable-linger");
    const Fix *fix =
        fix_with(&fixes, "printf '[Login]\\nRemoveIPC=no\\n' | sudo tee /etc/systemd/logind.conf.d/");
    assert_int_equal(fix->needs, NEEDS_ROOT);
    fixture_free(f);
}

static void test_flags(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    ShmFlags flags;
    assert_int_equal(shm_flags_make(&f->survey.machine, 3 * GIB, &f->arena, &flags), 0);
    assert_string_equal(flags.engine, "--shm-size=3g");
    assert_non_null(strstr(flags.compose, "shm_size: 3g"));
    assert_non_null(strstr(flags.kubernetes, "medium: Memory\n      sizeLimit: 3Gi"));
    assert_string_equal(flags.remount, "sudo mount -o remount,size=3g /dev/shm");
    assert_string_equal(flags.fstab, "tmpfs /dev/shm tmpfs rw,nosuid,nodev,mode=1777,size=3g 0 0");
    f->survey.machine.sandbox.kind = ENVIRONMENT_DOCKER; /* impossible from inside; from outside, with sudo */
    assert_int_equal(shm_flags_make(&f->survey.machine, 1536 * MIB, &f->arena, &flags), 0);
    assert_string_equal(flags.engine, "--shm-size=1536m");
    assert_string_equal(flags.remount, "sudo mount -o remount,size=1536m /dev/shm");
    fixture_free(f);
}

static void test_others(void **state)
{
    (void)state;
    static const struct {
        Place place;
        double quota;
        const char *cpus;
        const char *inodes;
        FixNeeds swap;
    } cases[] = {
        {{ENVIRONMENT_BARE}, 0, NULL, "sudo mount -o remount,nr_inodes=2000000 /dev/shm", NEEDS_ROOT},
        {{ENVIRONMENT_BARE, .slurm = true},
         0,
         "sbatch --cpus-per-task=12 job.sh",
         "sudo mount -o remount,nr_inodes=2000000 /dev/shm",
         NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER, .root = true}, 4, "docker run --cpus=12 IMAGE COMMAND", NULL, NEEDS_ADMIN},
        {{ENVIRONMENT_DOCKER}, 0, NULL, NULL, NEEDS_ADMIN},
        {{ENVIRONMENT_PODMAN}, 4, "podman run --cpus=12 IMAGE COMMAND", NULL, NEEDS_ADMIN},
        {{ENVIRONMENT_KUBERNETES}, 4, "cpu: 12", NULL, NEEDS_ADMIN},
        {{ENVIRONMENT_UNKNOWN}, 4, NULL, NULL, NEEDS_ADMIN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Machine *machine = &f->survey.machine;
        place_set(f, cases[i].place);
        machine->cgroup.cpu_quota = cases[i].quota;
        Fixes cpus = {0};
        Fixes inodes = {0};
        Fixes swap = {0};
        assert_int_equal(advise_cpus(machine, 12, &f->arena, &cpus), 0);
        assert_int_equal(advise_shm_inodes(machine, &f->arena, &inodes), 0);
        assert_int_equal(advise_swap(machine, &f->arena, &swap), 0);
        assert_int_equal(cpus.n, cases[i].cpus != NULL);
        if (cases[i].cpus)
            assert_non_null(fix_with(&cpus, cases[i].cpus));
        assert_true(!fix_with(&inodes, "nr_inodes") == !cases[i].inodes);
        if (cases[i].inodes)
            assert_string_equal(fix_with(&inodes, "nr_inodes")->command, cases[i].inodes);
        assert_int_equal(swap.items[0].needs, cases[i].swap);
        assert_sentences(&inodes);
        assert_sentences(&swap);
        fixture_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank),       cmocka_unit_test(test_quote),
        cmocka_unit_test(test_shm_size),   cmocka_unit_test(test_shm_size_limits),
        cmocka_unit_test(test_shm_absent), cmocka_unit_test(test_shm_writable),
        cmocka_unit_test(test_guard),      cmocka_unit_test(test_less_memory),
        cmocka_unit_test(test_open_files), cmocka_unit_test(test_kernel_settings),
        cmocka_unit_test(test_remove_ipc), cmocka_unit_test(test_others),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
