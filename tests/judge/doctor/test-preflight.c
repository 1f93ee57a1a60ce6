/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "preflight.h"

static const GuardOffer ready = {.ready = true};
static const GuardOffer broken = {.why_not = "memfd_create is refused here"};

static const PreflightPlan guarded = {.guarded = true, .budget_bytes = U64_UNKNOWN};
static const PreflightPlan plain = {.budget_bytes = U64_UNKNOWN};
static const PreflightPlan plain_tried = {.shm_tried = true, .budget_bytes = U64_UNKNOWN};
static const PreflightPlan plain_private = {
    .shm_tried = true, .private_shm_bytes = 8 * GIB, .budget_bytes = U64_UNKNOWN};
static const PreflightPlan private_small = {
    .shm_tried = true, .private_shm_bytes = 64 * MIB, .budget_bytes = U64_UNKNOWN};
static const PreflightPlan private_huge = {
    .guarded = true, .shm_tried = true, .private_shm_bytes = 100 * GIB, .budget_bytes = U64_UNKNOWN};
static const PreflightPlan budget_huge = {.guarded = true, .budget_bytes = 100 * GIB};
static const PreflightPlan budget_fits = {.guarded = true, .budget_bytes = 48 * GIB};
static const PreflightPlan budget_unguarded = {.budget_bytes = 100 * GIB};

static void fine(Machine *machine)
{
    (void)machine;
}

static void docker(Machine *machine)
{
    machine->shm.size_bytes = machine->shm.available_bytes = 64 * MIB;
}

static void docker_bound(Machine *machine)
{
    docker(machine);
    machine->sandbox = (Sandbox){.kind = ENVIRONMENT_DOCKER, .memfd = true};
}

static void full(Machine *machine)
{
    machine->shm.used_bytes = 31 * GIB;
    machine->shm.available_bytes = 1 * GIB;
}

static void brim(Machine *machine)
{
    machine->shm.used_bytes = 32 * GIB - 4096;
    machine->shm.available_bytes = 4096;
}

static void no_inodes(Machine *machine)
{
    machine->shm.inodes_free = 10;
}

static void few_inodes(Machine *machine)
{
    machine->shm.inodes_free = 64;
}

static void absent(Machine *machine)
{
    machine->shm = (ShmMount){.state = SHM_ABSENT};
}

static void read_only(Machine *machine)
{
    machine->shm.read_only = true;
}

static void on_disk(Machine *machine)
{
    machine->shm.state = SHM_NOT_TMPFS;
}

static void unlimited(Machine *machine)
{
    machine->shm.size_bytes = 0;
    machine->shm.used_bytes = machine->shm.available_bytes = U64_UNKNOWN;
}

static void memory(Machine *machine)
{
    machine->memory.available_bytes = 1 * GIB;
    machine->memory.swap_free_bytes = 0;
}

static void group(Machine *machine)
{
    machine->cgroup.memory_limit_bytes = 8 * GIB;
    machine->cgroup.memory_used_bytes = 15 * GIB / 2;
    machine->cgroup.memory_reclaimable_bytes = 100 * MIB;
    snprintf(machine->cgroup.limited_by, sizeof machine->cgroup.limited_by, "/docker/abc");
}

static void files(Machine *machine)
{
    machine->limits = (RLimits){.open_files_soft = 256, .open_files_hard = 512};
}

static void files_soft(Machine *machine)
{
    machine->limits = (RLimits){.open_files_soft = 256, .open_files_hard = 1024};
}

static void files_unknown(Machine *machine)
{
    machine->limits = (RLimits){.open_files_soft = U64_UNKNOWN, .open_files_hard = U64_UNKNOWN};
}

static void disk(Machine *machine)
{
    machine->disk.available_bytes = 100 * MIB;
}

static void disk_inodes(Machine *machine)
{
    machine->disk.inodes = 1000000;
    machine->disk.inodes_free = 7;
}

static void others_died(Machine *machine)
{
    machine->oom_kills = 7;
    machine->cgroup.oom_kills = 7;
}

static void logind(Machine *machine)
{
    machine->sandbox.remove_ipc = YES;
}

static void everything(Machine *machine)
{
    docker(machine);
    disk(machine);
    files(machine);
    memory(machine);
    machine->pressure = (Pressure){.some_avg60 = 30};
}

static void nothing_known(Machine *machine)
{
    *machine = (Machine){
        .memory = {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN},
        .shm = {.state = SHM_UNKNOWN},
        .cgroup = {.memory_limit_bytes = U64_UNKNOWN,
                   .memory_used_bytes = U64_UNKNOWN,
                   .memory_room_bytes = U64_UNKNOWN},
        .limits = {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN},
        .max_map_count = U64_UNKNOWN,
        .oom_kills = U64_UNKNOWN,
    };
}

static void test_preflight(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(Machine *machine);
        const PreflightPlan *plan;
        const GuardOffer *guard;
        Health verdict;
        const char *ids;
        const char *said; /* contained in what is said first */
    } cases[] = {
        {fine, &guarded, &ready, HEALTH_OK, "", NULL},
        {fine, &plain, &ready, HEALTH_OK, "", NULL},
        {docker, &guarded, &ready, HEALTH_OK, "", NULL},
        {docker, &plain, &ready, HEALTH_CRITICAL, "shm-too-small", "has only 64.0 MiB"},
        {docker, &plain, &ready, HEALTH_CRITICAL, "shm-too-small", "Remove --no-guard"},
        {docker, &plain, &broken, HEALTH_CRITICAL, "shm-too-small", "--shm auto"},
        {docker, &plain_tried, &broken, HEALTH_CRITICAL, "shm-too-small", "Keep fewer or smaller batches"},
        {docker_bound, &plain, &broken, HEALTH_CRITICAL, "shm-too-small", "Keep fewer or smaller batches"},
        {docker, &plain_private, &ready, HEALTH_OK, "", NULL},
        {fine, &private_small, &ready, HEALTH_CRITICAL, "shm-too-small", "64.0 MiB"},
        {full, &guarded, &ready, HEALTH_OK, "", NULL},
        {full, &plain, &ready, HEALTH_CRITICAL, "shm-nearly-full", "only 1.0 GiB free"},
        {brim, &guarded, &ready, HEALTH_WARNING, "shm-nearly-full", "NCCL"},
        {brim, &guarded, &ready, HEALTH_WARNING, "shm-nearly-full", "--shm auto"},
        {brim, &private_huge, &ready, HEALTH_WARNING, "private-shm", "100.0 GiB"},
        {no_inodes, &guarded, &ready, HEALTH_WARNING, "shm-inodes-low", "10 more files"},
        {few_inodes, &guarded, &ready, HEALTH_OK, "", NULL},
        {few_inodes, &plain, &ready, HEALTH_CRITICAL, "shm-inodes-low", "64 more files"},
        {absent, &guarded, &ready, HEALTH_CRITICAL, "shm-missing", "/dev/shm does not exist"},
        {absent, &plain, &ready, HEALTH_CRITICAL, "shm-missing", "Run shmguard doctor"},
        {read_only, &guarded, &ready, HEALTH_CRITICAL, "shm-missing", "--shm auto"},
        {on_disk, &guarded, &ready, HEALTH_OK, "", NULL},
        {on_disk, &plain, &ready, HEALTH_WARNING, "shm-missing", "--no-guard"},
        {unlimited, &plain, &ready, HEALTH_OK, "", NULL},
        {memory, &guarded, &ready, HEALTH_CRITICAL, "memory-low swap-low",
         "1.0 GiB of the machine's 64.0 GiB"},
        {memory, &guarded, &ready, HEALTH_CRITICAL, "memory-low swap-low", "ps -eo pid,rss"},
        {group, &guarded, &ready, HEALTH_WARNING, "cgroup-near-limit", "7.4 GiB of its 8.0 GiB"},
        {group, &guarded, &ready, HEALTH_WARNING, "cgroup-near-limit", "Lower num_workers"},
        {files, &guarded, &ready, HEALTH_WARNING, "open-files-low", "512 files"},
        {files_soft, &guarded, &ready, HEALTH_OK, "", NULL},
        {files_unknown, &guarded, &ready, HEALTH_OK, "", NULL},
        {disk, &guarded, &ready, HEALTH_WARNING, "disk-low", "100.0 MiB"},
        {disk_inodes, &guarded, &ready, HEALTH_WARNING, "disk-low", "7 inodes"},
        {others_died, &guarded, &ready, HEALTH_OK, "", NULL},
        {logind, &guarded, &ready, HEALTH_OK, "", NULL},
        {fine, &budget_huge, &ready, HEALTH_WARNING, "budget", "the budget is 100.0 GiB"},
        {fine, &budget_fits, &ready, HEALTH_OK, "", NULL},
        {fine, &budget_unguarded, &ready, HEALTH_OK, "", NULL},
        {everything, &plain, &ready, HEALTH_CRITICAL, "shm-too-small memory-low open-files-low", "64.0 MiB"},
        {everything, &guarded, &ready, HEALTH_CRITICAL, "memory-low open-files-low disk-low", "1.0 GiB"},
        {nothing_known, &guarded, &ready, HEALTH_OK, "", NULL},
        {nothing_known, &budget_huge, &broken, HEALTH_OK, "", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Preflight preflight;
        cases[i].spoil(&f->survey.machine);
        assert_int_equal(
            preflight_judge(&f->survey.machine, cases[i].guard, cases[i].plan, &f->arena, &preflight), 0);
        _cleanup_buffer_ Buffer ids = {0};
        _cleanup_buffer_ Buffer first = {0};
        for (size_t j = 0; j < preflight.n; j++) {
            const Threat *threat = &preflight.items[j];
            (void)buffer_printf(&ids, "%s%s", j ? " " : "", threat->id);
            if (j == 0)
                (void)buffer_printf(&first, "%s. %s", threat->text, threat->remedy);
            assert_true(strlen(threat->text) + 2 + strlen(threat->remedy) <= THREAT_COLUMNS);
            assert_null(strpbrk(threat->text, "\n\033"));
            assert_null(strpbrk(threat->remedy, "\n\033"));
            assert_true(threat->severity != SEVERITY_INFO);
            assert_true(j == 0 || preflight.items[j - 1].severity >= threat->severity);
        }
        if (strcmp(buffer_text(&ids), cases[i].ids) != 0 ||
            preflight_health(&preflight) != cases[i].verdict ||
            (cases[i].said && !strstr(buffer_text(&first), cases[i].said)))
            fail_msg("case %zu: %d: %s: %s", i, preflight_health(&preflight), buffer_text(&ids),
                     buffer_text(&first));
        fixture_free(f);
    }
}

/* What others do here is theirs: not even a survey full of them is looked at. */
static void test_captured(void **state)
{
    (void)state;
    static const char *const roots[] = {"bare", "docker", "kubernetes", "slurm", "cgroup-v1", "hostile"};
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        char path[512];
        _cleanup_arena_ Arena arena = {0};
        snprintf(path, sizeof path, ROOTS_DIRECTORY "/%s", roots[i]);
        Root root;
        Machine machine;
        Preflight preflight;
        assert_int_equal(root_open(path, &root), 0);
        if (machine_read(&root, 0, MACHINE_NAMESPACES | MACHINE_KERNEL_LOG, &arena, &machine) == 0) {
            assert_int_equal(preflight_judge(&machine, &ready, &plain, &arena, &preflight), 0);
            assert_true(preflight.n <= THREATS_MAX);
            if (strcmp(roots[i], "docker") == 0)
                assert_string_equal(preflight.items[0].id, "shm-too-small");
        }
        root_close(&root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_preflight), cmocka_unit_test(test_captured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
