/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "checks.h"
#include "doctor-text.h"
#include "documents.h"

/* What a check should report: a severity, or one of these. */
enum { FINE = -1, SKIPPED = 100 };
enum { INFO = SEVERITY_INFO, WARNING = SEVERITY_WARNING, CRITICAL = SEVERITY_CRITICAL };

static const GuardOffer ready = {.ready = true};
static const GuardOffer broken = {.why_not = "memfd_create does not work here"};

static bool was_found[64]; /* by the place of the check in the table */

static void findings_count(const Findings *findings)
{
    for (size_t i = 0; check_at(i); i++)
        for (size_t k = 0; k < findings->n; k++)
            was_found[i] = was_found[i] || strcmp(findings->items[k].id, check_at(i)->id) == 0;
}

static Findings run(Fixture *f, const GuardOffer *guard, int pid)
{
    Findings findings;
    assert_int_equal(checks_run(&f->survey, guard, pid, &f->arena, &findings), 0);
    findings_count(&findings);
    return findings;
}

static const Finding *finding(const Findings *findings, const char *id)
{
    const Finding *found = NULL;
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->items[i].id, id) == 0) {
            assert_null(found); /* one finding for each id */
            found = &findings->items[i];
        }
    return found;
}

static const char *skipped(const Findings *findings, const char *id)
{
    size_t n = strlen(id);
    for (size_t i = 0; i < findings->n_skipped; i++)
        if (strncmp(findings->skipped[i], id, n) == 0 && findings->skipped[i][n] == ':')
            return findings->skipped[i];
    return NULL;
}

static const Fix *fix_with(const Finding *found, const char *text)
{
    for (size_t i = 0; i < found->fixes.n; i++)
        if ((found->fixes.items[i].command && strstr(found->fixes.items[i].command, text)) ||
            strstr(found->fixes.items[i].what, text))
            return &found->fixes.items[i];
    return NULL;
}

static const Check *check_of(const Finding *found)
{
    for (size_t i = 0; check_at(i); i++)
        if (strcmp(check_at(i)->id, found->id) == 0)
            return check_at(i);
    fail_msg("%s is the id of no check", found->id);
    return NULL;
}

/* What holds for every finding: a severity of its check, texts of one line, fixes in rank. */
static void assert_well_formed(const Findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        const Finding *found = &findings->items[i];
        assert_in_range(found->severity, check_of(found)->least, check_of(found)->worst);
        assert_true(strlen(found->title) > 5 && strlen(found->title) < 110);
        assert_null(strpbrk(found->title, "\n\033"));
        assert_null(strpbrk(found->evidence, "\n\033"));
        assert_int_equal(found->evidence[strlen(found->evidence) - 1], '.');
        if (i > 0)
            assert_true(findings->items[i - 1].severity >= found->severity);
        for (size_t j = 1; j < found->fixes.n; j++)
            assert_true(found->fixes.items[j - 1].needs <= found->fixes.items[j].needs);
    }
    for (size_t i = 0; i < findings->n_skipped; i++)
        assert_null(strpbrk(findings->skipped[i], "\n\033"));
}

/* Runs the checks, compares the result with `wanted`, and frees the fixture. */
static void expect(Fixture *f, const char *id, int wanted, const char *test, size_t i)
{
    Findings findings = run(f, &ready, 0);
    assert_well_formed(&findings);
    const Finding *found = finding(&findings, id);
    int said = found ? (int)found->severity : skipped(&findings, id) ? SKIPPED : FINE;
    if (said != wanted)
        fail_msg("%s, case %zu: %s says %d, not %d: %s", test, i, id, said, wanted,
                 found             ? found->evidence
                 : said == SKIPPED ? skipped(&findings, id)
                                   : "nothing");
    fixture_free(f);
}
#define EXPECT(f, id, wanted, i) expect((f), (id), (wanted), __func__, (i))

static void test_healthy(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Findings findings = run(f, &ready, 0);
    assert_int_equal(findings.n, 0);
    assert_int_equal(findings.n_skipped, 0);
    assert_int_equal(findings_health(&findings), HEALTH_OK);

    fixture_busy_job(f, 100, 4, 10 * MIB);
    findings = run(f, &ready, 0);
    assert_well_formed(&findings);
    assert_int_equal(findings_health(&findings), HEALTH_OK);
    assert_int_equal(findings.n, 1); /* how much the job needs */
    assert_int_equal(findings.n_skipped, 0);
    fixture_free(f);
}

static void test_documented(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer manual = {0};
    document_read("man/shmguard.1", &manual);
    for (size_t i = 0; check_at(i); i++) {
        const Check *check = check_at(i);
        assert_in_range(check->worst, check->least, SEVERITY_CRITICAL);
        if (!manual_names(&manual, check->id))
            fail_msg("man/shmguard.1 does not mention %s", check->id);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(health_name(HEALTH_OK), "ok");
    assert_string_equal(health_name(HEALTH_WARNING), "warning");
    assert_string_equal(health_name(HEALTH_CRITICAL), "critical");
    assert_string_equal(severity_name(SEVERITY_INFO), "info");
    assert_string_equal(severity_name(SEVERITY_WARNING), "warning");
    assert_string_equal(severity_name(SEVERITY_CRITICAL), "critical");
    Finding items[] = {{.severity = SEVERITY_INFO}, {.severity = SEVERITY_WARNING}};
    Findings findings = {.items = items, .n = 1};
    assert_int_equal(findings_health(&findings), HEALTH_OK);
    findings.n = 2;
    assert_int_equal(findings_health(&findings), HEALTH_WARNING);
    items[0].severity = SEVERITY_CRITICAL;
    assert_int_equal(findings_health(&findings), HEALTH_CRITICAL);
}

static void test_shm_missing(void **state)
{
    (void)state;
    static const struct {
        ShmMount shm;
        int wanted;
    } cases[] = {
        {{.state = SHM_OK, .size_bytes = GIB, .mounted = true}, FINE},
        {{.state = SHM_ABSENT}, CRITICAL},
        {{.state = SHM_NOT_TMPFS}, WARNING},
        {{.state = SHM_NOT_TMPFS, .no_access = true}, CRITICAL},
        {{.state = SHM_OK, .size_bytes = GIB, .mounted = true, .read_only = true}, CRITICAL},
        {{.state = SHM_OK, .size_bytes = GIB, .mounted = true, .no_access = true}, CRITICAL},
        {{.state = SHM_UNKNOWN}, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.shm = cases[i].shm;
        EXPECT(f, "shm-missing", cases[i].wanted, i);
    }
    /* No check judges the figures of a mount that does not exist. */
    Fixture *f = fixture_new();
    f->survey.machine.shm = (ShmMount){.state = SHM_ABSENT, .used_bytes = 5, .inodes = 5};
    f->survey.machine.sandbox.kind = ENVIRONMENT_DOCKER;
    Findings findings = run(f, &ready, 0);
    assert_int_equal(findings.n, 1);
    assert_null(fix_with(&findings.items[0], "shmguard run"));
    assert_non_null(fix_with(&findings.items[0], "--shm-size=8g"));
    fixture_free(f);
}

static void test_shm_size_without_jobs(void **state)
{
    (void)state;
    static const struct {
        uint64_t size;
        uint64_t memory;
        int wanted;
    } cases[] = {
        {0, 64 * GIB, FINE}, /* no limit */
        {1, 64 * GIB, CRITICAL},
        {64 * MIB, 64 * GIB, CRITICAL},
        {64 * MIB + 1, 64 * GIB, WARNING},
        {GIB - 1, 64 * GIB, WARNING},
        {GIB, 64 * GIB, FINE},
        {U64_UNKNOWN, 64 * GIB, FINE},
        {512 * MIB, 2 * GIB, FINE}, /* a quarter of a small machine */
        {512 * MIB - 1, 2 * GIB, WARNING},
        {64 * MIB, 200 * MIB, FINE},
        {GIB - 1, U64_UNKNOWN, WARNING},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.shm.size_bytes = cases[i].size;
        f->survey.machine.memory.total_bytes = cases[i].memory;
        EXPECT(f, "shm-too-small", cases[i].wanted, i);
    }
}

/* Four workers with batches of 10 MiB: 9 of them are 90 MiB, with the margin 117. */
static void test_shm_size_with_jobs(void **state)
{
    (void)state;
    static const struct {
        uint64_t size;
        uint64_t others; /* used by other processes */
        int wanted;
        int need; /* what shm-need says */
    } cases[] = {
        {64 * MIB, 0, CRITICAL, FINE},
        {90 * MIB - 1, 0, CRITICAL, FINE},
        {90 * MIB, 0, WARNING, FINE},
        {117 * MIB - 1, 0, WARNING, FINE},
        {117 * MIB, 0, FINE, INFO},
        {117 * MIB, 1 * MIB, WARNING, FINE},
        {117 * MIB, 30 * MIB, CRITICAL, FINE},
        {0, 0, FINE, INFO},
        {0, 2 * GIB, FINE, INFO},
        {U64_UNKNOWN, 0, FINE, INFO},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int j = 0; j < 2; j++) {
            Fixture *f = fixture_new();
            fixture_busy_job(f, 100, 4, 10 * MIB);
            f->survey.machine.shm.size_bytes = cases[i].size;
            f->survey.machine.shm.used_bytes += cases[i].others;
            EXPECT(f, j ? "shm-need" : "shm-too-small", j ? cases[i].need : cases[i].wanted, i);
        }
}

/* The figures in the evidence add up in every case. */
static void test_shm_size_adds_up(void **state)
{
    (void)state;
    static const struct {
        uint64_t model; /* that the trainer shares */
        size_t extra;   /* batches that it holds */
        const char *estimated;
    } cases[] = {
        {0, 0,
         "a batch is 6.0 MiB and up to 5 are in memory at once, so the job needs 30.0 MiB. With a margin, "
         "this is "},
        {MIB, 0,
         "a batch is 6.0 MiB and up to 5 are in memory at once, besides 1.0 MiB of other shared memory, so "
         "the job needs 31.0 MiB. With"},
        {0, 2,
         "a batch is 6.0 MiB and up to 5 are in memory at once, which makes 30.0 MiB; the job already holds "
         "more (36.0 MiB, measured), so it needs that. With"},
        {MIB, 2,
         "a batch is 6.0 MiB and up to 5 are in memory at once, besides 1.0 MiB of other shared memory, "
         "which makes 31.0 MiB; the job already holds more (37.0 MiB, measured), so it needs that. With"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_busy_job(f, 100, 2, 6 * MIB);
        if (cases[i].model)
            fixture_tensor(f, 100, cases[i].model, 100);
        for (size_t j = 0; j < cases[i].extra; j++)
            fixture_tensor(f, 101, 6 * MIB, 100);
        f->survey.machine.shm.size_bytes = 20 * MIB;
        Findings findings = run(f, &ready, 0);
        assert_well_formed(&findings);
        assert_non_null(strstr(finding(&findings, "shm-too-small")->evidence, cases[i].estimated));
        fixture_free(f);
    }
}

static void test_shm_size_says(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_busy_job(f, 100, 4, 10 * MIB);
    f->survey.machine.shm.size_bytes = 64 * MIB;
    f->survey.machine.shm.used_bytes = 44 * MIB; /* not realistic, but the figures need not add up */
    Findings findings = run(f, &ready, 0);
    const Finding *found = finding(&findings, "shm-too-small");
    assert_non_null(strstr(found->evidence, "Measured: the size of /dev/shm is 64.0 MiB. "));
    assert_non_null(strstr(found->evidence, " The job of pid 100 holds 80.0 MiB with 4 workers. "));
    assert_non_null(strstr(found->evidence,
                           "Estimated: a batch is 10.0 MiB and up to 9 are in memory at once, so the "
                           "job needs 90.0 MiB."));
    assert_non_null(strstr(found->evidence, " With a margin, this is 117.0 MiB."));
    /* 6 batches fit in 64 MiB: four workers with one each, and one that the trainer holds. */
    assert_non_null(
        fix_with(found, "num_workers=4 and prefetch_factor=1, or with a batch_size of at most 71%"));
    assert_non_null(fix_with(found, "shmguard run"));
    assert_non_null(fix_with(found, "sudo mount -o remount,size=512m /dev/shm"));

    findings = run(f, &broken, 0);
    for (size_t i = 0; i < findings.n; i++)
        assert_null(fix_with(&findings.items[i], "shmguard run"));
    fixture_free(f);
}

static void test_smaller_batches(void **state)
{
    (void)state;
    static const struct {
        uint64_t size;
        const char *advice;
    } cases[] = {
        {89 * MIB, "num_workers=4 and prefetch_factor=1, or with a batch_size of at most 98%"},
        {35 * MIB, "num_workers=2 and prefetch_factor=1, or with a batch_size of at most 38%"},
        {20 * MIB, "num_workers=1 and prefetch_factor=1, or with a batch_size of at most 22%"},
        {19 * MIB, "use num_workers=0, or a batch_size of at most 21%"},
        {500 * 1024, "use num_workers=0."},
        {1, "use num_workers=0."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_busy_job(f, 100, 4, 10 * MIB);
        f->survey.machine.shm.size_bytes = cases[i].size;
        Findings findings = run(f, &ready, 0);
        if (!fix_with(finding(&findings, "shm-too-small"), cases[i].advice))
            fail_msg("case %zu", i);
        fixture_free(f);
    }
}

static void test_shm_size_of_some_jobs(void **state)
{
    (void)state;
    /* Under the guard the mount does not matter. */
    Fixture *f = fixture_new();
    fixture_job(f, 100, 4);
    Segment *segment = fixture_segment(f, "shmguard-1", KIND_SHMGUARD, GIB, 101);
    segment->backing = BACKING_MEMFD;
    segment->on_mount = false;
    f->survey.machine.shm.size_bytes = 64 * MIB;
    EXPECT(f, "shm-too-small", FINE, 0);

    /* A container's job seen from the host. */
    f = fixture_new();
    fixture_job(f, 100, 4);
    fixture_tensor(f, 101, 20 * GIB, 101)->on_mount = false;
    f->survey.machine.shm.used_bytes = 0;
    EXPECT(f, "shm-too-small", SKIPPED, 1);

    /* Workers, but no batch seen yet: judged as without jobs. */
    f = fixture_new();
    fixture_job(f, 100, 4);
    f->survey.machine.shm.size_bytes = 64 * MIB;
    EXPECT(f, "shm-too-small", CRITICAL, 2);

    /* Several jobs, a model shared by two of them counted once: 2 x 90 MiB + 40 MiB, x 1.3 = 286 MiB. */
    for (size_t i = 0; i < 2; i++) {
        f = fixture_new();
        fixture_busy_job(f, 100, 4, 10 * MIB);
        fixture_busy_job(f, 200, 4, 10 * MIB);
        segment = fixture_tensor(f, 100, 40 * MIB, 100);
        fixture_hold(segment, 200);
        f->survey.machine.shm.size_bytes = (i ? 287 : 285) * MIB;
        EXPECT(f, "shm-too-small", i ? FINE : WARNING, 3 + i);
    }

    /* For one job, the segments of the other are only used space: 90 x 1.3 + 80. */
    f = fixture_new();
    fixture_busy_job(f, 100, 4, 10 * MIB);
    fixture_busy_job(f, 200, 4, 10 * MIB);
    f->survey.machine.shm.size_bytes = 197 * MIB;
    Findings findings = run(f, &ready, 203);
    assert_null(finding(&findings, "shm-too-small"));
    f->survey.machine.shm.size_bytes = 197 * MIB - 1;
    findings = run(f, &ready, 203);
    assert_non_null(strstr(finding(&findings, "shm-too-small")->evidence, "The job of pid 200 holds"));
    assert_null(strstr(finding(&findings, "shm-too-small")->evidence, "pid 100"));
    fixture_free(f);

    /* For a training without workers, a small mount is harmless. */
    f = fixture_new();
    fixture_job(f, 100, 0);
    f->survey.machine.shm.size_bytes = 64 * MIB;
    findings = run(f, &ready, 100);
    assert_null(finding(&findings, "shm-too-small"));
    findings = run(f, &ready, 0);
    assert_non_null(finding(&findings, "shm-too-small"));
    fixture_free(f);

    /* More jobs than are listed one by one. */
    f = fixture_new();
    for (int i = 1; i <= 5; i++)
        fixture_busy_job(f, 100 * i, 2, 10 * MIB);
    f->survey.machine.shm.size_bytes = 64 * MIB;
    findings = run(f, &ready, 0);
    assert_well_formed(&findings);
    assert_non_null(strstr(finding(&findings, "shm-too-small")->evidence, " There are 2 more jobs. "));
    fixture_free(f);
}

static void test_shm_share_of_memory(void **state)
{
    (void)state;
    /* 90 MiB x 1.3 = 117 MiB. */
    static const struct {
        uint64_t total;
        uint64_t limit;
        int wanted;
    } cases[] = {
        {64 * GIB, U64_UNKNOWN, FINE},       {468 * MIB, U64_UNKNOWN, FINE},
        {467 * MIB, U64_UNKNOWN, WARNING},   {64 * GIB, 468 * MIB, FINE},
        {64 * GIB, 467 * MIB, WARNING},      {U64_UNKNOWN, 467 * MIB, WARNING},
        {U64_UNKNOWN, U64_UNKNOWN, SKIPPED}, {0, U64_UNKNOWN, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_busy_job(f, 100, 4, 10 * MIB);
        f->survey.machine.memory.total_bytes = cases[i].total;
        f->survey.machine.cgroup.memory_limit_bytes = cases[i].limit;
        EXPECT(f, "shm-share-of-memory", cases[i].wanted, i);
    }
    Fixture *f = fixture_new();
    f->survey.machine.memory.total_bytes = U64_UNKNOWN;
    EXPECT(f, "shm-share-of-memory", FINE, 100); /* no job, nothing to say */
}

static void test_shm_nearly_full(void **state)
{
    (void)state;
    static const struct {
        uint64_t used;
        uint64_t size;
        int wanted;
    } cases[] = {
        {0, 1000, FINE},           {799, 1000, FINE},         {800, 1000, WARNING},
        {949, 1000, WARNING},      {950, 1000, CRITICAL},     {1000, 1000, CRITICAL},
        {1000, 0, FINE}, /* no limit */
        {U64_UNKNOWN, 1000, FINE}, {1000, U64_UNKNOWN, FINE}, {UINT64_MAX - 2, UINT64_MAX - 1, CRITICAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.shm.used_bytes = cases[i].used;
        f->survey.machine.shm.size_bytes = cases[i].size;
        EXPECT(f, "shm-nearly-full", cases[i].wanted, i);
    }
}

static void test_shm_inodes_low(void **state)
{
    (void)state;
    static const struct {
        uint64_t inodes;
        uint64_t left;
        int wanted;
    } cases[] = {
        {0, 0, FINE}, /* no limit */
        {1000, 201, FINE},   {1000, 200, WARNING}, {1000, 51, WARNING},       {1000, 50, CRITICAL},
        {1000, 0, CRITICAL}, {1000, 5000, FINE},   {U64_UNKNOWN, 0, SKIPPED}, {1000, U64_UNKNOWN, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.shm.inodes = cases[i].inodes;
        f->survey.machine.shm.inodes_free = cases[i].left;
        EXPECT(f, "shm-inodes-low", cases[i].wanted, i);
    }
}

static void test_shm_orphans(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t size;
        SegmentKind kind;
        int wanted;
    } cases[] = {
        {100 * MIB, GIB, KIND_TORCH, INFO},
        {103 * MIB, GIB, KIND_TORCH, WARNING},
        {GIB - 1, 32 * GIB, KIND_NCCL, INFO},
        {GIB, 32 * GIB, KIND_NCCL, WARNING},
        {GIB - 1, 0, KIND_TORCH, INFO},
        {GIB, 0, KIND_TORCH, WARNING},
        {UINT64_MAX - 1, 32 * GIB, KIND_TORCH, WARNING},
        {20 * GIB, 32 * GIB, KIND_OTHER, FINE}, /* clean does not touch it */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.shm.size_bytes = cases[i].size;
        fixture_segment(f, "torch_7_1_0", cases[i].kind, cases[i].bytes, 0)->open = OPEN_NOWHERE;
        EXPECT(f, "shm-orphans", cases[i].wanted, i);
    }

    Fixture *f = fixture_new();
    fixture_process(f, 100, 1, ROLE_OTHER, 0);
    fixture_segment(f, "torch_7_1_0", KIND_TORCH, GIB, 100);
    EXPECT(f, "shm-orphans", FINE, 100);

    /* A process that is not visible may hold it. */
    f = fixture_new();
    f->survey.machine.sandbox.sees_all = false;
    f->survey.machine.sandbox.initial_pidns = false;
    f->survey.n_unreadable = 3;
    fixture_segment(f, "torch_7_1_0", KIND_TORCH, GIB, 0)->open = OPEN_CANNOT_TELL;
    EXPECT(f, "shm-orphans", SKIPPED, 101);
}

static void test_orphans_of_whom(void **state)
{
    (void)state;
    static const struct {
        bool root;
        EnvironmentKind kind;
        bool own;
        bool foreign;
        int clean;      /* needs of "shmguard clean"; -1 not offered */
        int sudo_clean; /* of "sudo shmguard clean" */
    } cases[] = {
        {false, ENVIRONMENT_BARE, true, false, NEEDS_NOTHING, -1},
        {false, ENVIRONMENT_BARE, true, true, NEEDS_NOTHING, NEEDS_ROOT},
        {false, ENVIRONMENT_BARE, false, true, -1, NEEDS_ROOT},
        {false, ENVIRONMENT_DOCKER, false, true, -1, NEEDS_ADMIN},
        {true, ENVIRONMENT_DOCKER, false, true, NEEDS_ROOT, -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.sandbox.kind = cases[i].kind;
        f->survey.machine.sandbox.root = cases[i].root;
        f->survey.machine.uid = cases[i].root ? 0 : 1000;
        if (cases[i].own)
            fixture_segment(f, "torch_7_1_0", KIND_TORCH, MIB, 0)->open = OPEN_NOWHERE;
        if (cases[i].foreign) {
            Segment *segment = fixture_segment(f, "torch_8_1_0", KIND_TORCH, MIB, 0);
            segment->uid = 2000;
            segment->open = OPEN_NOWHERE;
        }
        Findings findings = run(f, &ready, 0);
        const Fixes *fixes = &finding(&findings, "shm-orphans")->fixes;
        assert_string_equal(fixes->items[0].command, "shmguard clean --dry-run");
        int clean = -1;
        int sudo_clean = -1;
        for (size_t j = 1; j < fixes->n; j++)
            if (strcmp(fixes->items[j].command, "shmguard clean") == 0)
                clean = (int)fixes->items[j].needs;
            else if (strcmp(fixes->items[j].command, "sudo shmguard clean") == 0)
                sudo_clean = (int)fixes->items[j].needs;
        if (clean != cases[i].clean || sudo_clean != cases[i].sudo_clean)
            fail_msg("case %zu: %d %d", i, clean, sudo_clean);
        fixture_free(f);
    }
}

static void test_memory_low(void **state)
{
    (void)state;
    static const struct {
        uint64_t available;
        uint64_t total;
        int wanted;
    } cases[] = {
        {500, 1000, FINE},
        {100, 1000, FINE},
        {99, 1000, WARNING},
        {50, 1000, WARNING},
        {49, 1000, CRITICAL},
        {0, 1000, CRITICAL},
        {2000, 1000, FINE},
        {0, 0, SKIPPED},
        {U64_UNKNOWN, 1000, SKIPPED},
        {0, U64_UNKNOWN, SKIPPED},
        {UINT64_MAX / 20 - 1000000, UINT64_MAX - 1, CRITICAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.memory.available_bytes = cases[i].available;
        f->survey.machine.memory.total_bytes = cases[i].total;
        EXPECT(f, "memory-low", cases[i].wanted, i);
    }
}

static void test_cgroup_near_limit(void **state)
{
    (void)state;
    static const struct {
        int version;
        uint64_t limit;
        uint64_t used;
        uint64_t reclaimable;
        int wanted;
    } cases[] = {
        {2, 1000, 900, 0, FINE},
        {2, 1000, 901, 0, WARNING},
        {1, 1000, 950, 0, WARNING},
        {2, 1000, 951, 0, CRITICAL},
        {2, 1000, 1000, 100, FINE},
        {2, 1000, 1000, 99, WARNING},
        {2, 1000, 1000, U64_UNKNOWN, CRITICAL},
        {2, 1000, 500, 600, FINE},
        {2, 1000, 1100, 0, CRITICAL}, /* charged before it is reclaimed */
        {2, U64_UNKNOWN, 900, 0, FINE},
        {2, 1000, U64_UNKNOWN, 0, SKIPPED},
        {0, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, SKIPPED},
        {2, 0, 0, 0, CRITICAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Cgroup *cgroup = &f->survey.machine.cgroup;
        cgroup->version = cases[i].version;
        cgroup->memory_limit_bytes = cases[i].limit;
        cgroup->memory_used_bytes = cases[i].used;
        cgroup->memory_reclaimable_bytes = cases[i].reclaimable;
        snprintf(cgroup->limited_by, sizeof cgroup->limited_by, "/a\n\033[31mb");
        EXPECT(f, "cgroup-near-limit", cases[i].wanted, i);
    }
}

static void test_memory_pressure(void **state)
{
    (void)state;
    static const struct {
        bool has;
        Pressure pressure;
        int wanted;
    } cases[] = {
        {true, {0}, FINE},
        {true, {.some_avg60 = 9.99}, FINE},
        {true, {.some_avg60 = 10}, WARNING},
        {true, {.some_avg60 = 6, .full_avg60 = 5}, WARNING},
        {true, {.some_avg60 = 90, .full_avg60 = 40, .full_avg10 = 39}, WARNING},
        {true, {.some_avg60 = 90, .full_avg60 = 40, .full_avg10 = 40}, CRITICAL},
        {true, {.some_avg10 = 100, .full_avg10 = 100}, FINE}, /* ten seconds are no trend */
        {false, {.some_avg60 = 100}, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.has_pressure = cases[i].has;
        f->survey.machine.pressure = cases[i].pressure;
        EXPECT(f, "memory-pressure", cases[i].wanted, i);
    }
}

static void test_swap_low(void **state)
{
    (void)state;
    static const struct {
        uint64_t left;
        uint64_t swap;
        uint64_t available; /* of 1000 */
        int wanted;
    } cases[] = {
        {100, 1000, 100, FINE},
        {99, 1000, 500, INFO},
        {99, 1000, 199, WARNING},
        {99, 1000, 200, INFO},
        {0, 0, 500, FINE}, /* no swap, and none needed */
        {0, 0, 199, INFO},
        {U64_UNKNOWN, 1000, 100, SKIPPED},
        {0, U64_UNKNOWN, 100, SKIPPED},
        {0, 1000, U64_UNKNOWN, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.memory = (MemInfo){.total_bytes = 1000,
                                             .available_bytes = cases[i].available,
                                             .swap_total_bytes = cases[i].swap,
                                             .swap_free_bytes = cases[i].left};
        EXPECT(f, "swap-low", cases[i].wanted, i);
    }
}

enum { HOUR = 3600, DAY = 24 * HOUR };

static void test_oom_recent(void **state)
{
    (void)state;
    static const struct {
        double age;
        const char *comm;
        int wanted;
    } cases[] = {
        {3 * HOUR, "python3", WARNING},  {3 * HOUR, "pt_data_worker", WARNING},
        {3 * HOUR, "torchrun", WARNING}, {3 * HOUR, "postgres", INFO},
        {DAY, "python3", WARNING},       {DAY + 1, "python3", INFO},
        {-100, "python3", WARNING},      /* a clock that jumped */
        {500001 + 1e6, "python3", INFO}, /* no time in the log */
        {3 * HOUR, "a\n\033[0mb", INFO}, {3 * HOUR, "", INFO},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Machine *machine = &f->survey.machine;
        OomKill kill = {.boottime = machine->boottime - cases[i].age,
                        .pid = 4242,
                        .anon_bytes = 12 * GIB,
                        .file_bytes = U64_UNKNOWN,
                        .shmem_bytes = GIB};
        snprintf(kill.comm, sizeof kill.comm, "%s", cases[i].comm);
        machine->kills = (OomKills){.items = &kill, .n = 1};
        EXPECT(f, "oom-recent", cases[i].wanted, i);
    }
}

static void test_oom_at_an_unknown_time(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Machine *machine = &f->survey.machine;
    OomKill kill = {.boottime = 5, .pid = 4242, .comm = "python3"};
    machine->boottime = 0; /* a tree without a clock */
    machine->kills = (OomKills){.items = &kill, .n = 1};
    EXPECT(f, "oom-recent", INFO, 0);
}

static void test_oom_says(void **state)
{
    (void)state;
    static const struct {
        OomScope scope;
        const char *cgroup;
        const char *evidence;
    } cases[] = {
        {OOM_SCOPE_CGROUP, "/docker/abc", "the control group /docker/abc was at its limit"},
        {OOM_SCOPE_CGROUP, "", "a control group was at its limit (which one is unknown)"},
        {OOM_SCOPE_MACHINE, "", "the machine was out of memory"},
        {OOM_SCOPE_UNKNOWN, "", "whether the control group or the machine was out of memory is unknown"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Machine *machine = &f->survey.machine;
        OomKill kills[] = {
            {.boottime = machine->boottime - 3 * HOUR,
             .pid = 4242,
             .comm = "python3",
             .scope = cases[i].scope,
             .anon_bytes = 11 * GIB,
             .shmem_bytes = GIB},
            {.boottime = machine->boottime - HOUR, .pid = 7, .comm = "postgres"},
        };
        snprintf(kills[0].cgroup, sizeof kills[0].cgroup, "%s", cases[i].cgroup);
        machine->kills = (OomKills){.items = kills, .n = 2};
        Findings findings = run(f, &ready, 0);
        const Finding *found = finding(&findings, "oom-recent");
        /* The training's, although another one is newer. */
        assert_string_equal(found->title, "The kernel killed python3 (pid 4242) 3 h ago to free memory");
        assert_non_null(strstr(found->evidence, cases[i].evidence));
        assert_non_null(strstr(found->evidence, "had 12.0 GiB, of which 1.0 GiB was shared memory."));
        assert_non_null(strstr(found->evidence, "2 kills in total"));
        fixture_free(f);
    }
}

static void test_oom_of_another_group(void **state)
{
    (void)state;
    static const struct {
        int pid;
        OomScope scope;
        const char *cgroup;
        const char *path;
        EnvironmentKind kind;
        int wanted;
    } cases[] = {
        {100, OOM_SCOPE_CGROUP, "/a/b", "/a/b", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/a", "/a/b", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/", "/a/b", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/a/c", "/a/b", ENVIRONMENT_BARE, INFO},
        {100, OOM_SCOPE_CGROUP, "/a/b/c", "/a/b", ENVIRONMENT_BARE, INFO},
        {100, OOM_SCOPE_CGROUP, "/a", "/ab/c", ENVIRONMENT_BARE, INFO},
        {0, OOM_SCOPE_CGROUP, "/a/c", "/a/b", ENVIRONMENT_BARE, WARNING}, /* no job was asked about */
        {100, OOM_SCOPE_MACHINE, "/a/c", "/a/b", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_UNKNOWN, "", "/a/b", ENVIRONMENT_BARE, WARNING},
        /* Paths that cannot be compared. */
        {100, OOM_SCOPE_CGROUP, "", "/a/b", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/a/c", "", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/a/c", "/", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/a/c", "/../b", ENVIRONMENT_BARE, WARNING},
        {100, OOM_SCOPE_CGROUP, "/docker/abc", "/job", ENVIRONMENT_DOCKER, WARNING},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Machine *machine = &f->survey.machine;
        fixture_job(f, 100, 1);
        OomKill kill = {.boottime = machine->boottime - HOUR, .comm = "python3", .scope = cases[i].scope};
        snprintf(kill.cgroup, sizeof kill.cgroup, "%s", cases[i].cgroup);
        snprintf(machine->cgroup.path, sizeof machine->cgroup.path, "%s", cases[i].path);
        machine->sandbox.kind = cases[i].kind;
        machine->kills = (OomKills){.items = &kill, .n = 1};
        Findings findings = run(f, &ready, cases[i].pid);
        assert_well_formed(&findings);
        const Finding *found = finding(&findings, "oom-recent");
        if ((int)found->severity != cases[i].wanted)
            fail_msg("case %zu: %d", i, (int)found->severity);
        bool another = strstr(found->evidence, "was at its limit, which is not the job's. ");
        assert_int_equal(another, cases[i].wanted == INFO);
        assert_int_equal(found->fixes.n == 0, cases[i].wanted == INFO);
        fixture_free(f);
    }

    /* The newest is another group's: the job's own counts. */
    Fixture *f = fixture_new();
    Machine *machine = &f->survey.machine;
    fixture_job(f, 100, 1);
    OomKill kills[] = {
        {.boottime = machine->boottime - 3 * HOUR,
         .pid = 41,
         .comm = "python3",
         .scope = OOM_SCOPE_CGROUP,
         .cgroup = "/a/b"},
        {.boottime = machine->boottime - HOUR,
         .pid = 42,
         .comm = "python3",
         .scope = OOM_SCOPE_CGROUP,
         .cgroup = "/a/c"},
    };
    snprintf(machine->cgroup.path, sizeof machine->cgroup.path, "/a/b");
    machine->kills = (OomKills){.items = kills, .n = 2};
    Findings findings = run(f, &ready, 100);
    assert_non_null(strstr(finding(&findings, "oom-recent")->title, "(pid 41)"));
    fixture_free(f);
}

static void test_oom_memory(void **state)
{
    (void)state;
    static const struct {
        uint64_t anon;
        uint64_t file;
        uint64_t shared;
        const char *evidence;
    } cases[] = {
        {11 * GIB, GIB, GIB, ". The process had 13.0 GiB, of which 1.0 GiB was shared memory."},
        {11 * GIB, U64_UNKNOWN, GIB,
         ". The process had at least 12.0 GiB, of which 1.0 GiB was shared memory."},
        {11 * GIB, GIB, U64_UNKNOWN,
         ". The process had 12.0 GiB; how much of it was shared memory is unknown."},
        {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, ". How much memory the process had is unknown."},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Machine *machine = &f->survey.machine;
        OomKill kill = {.boottime = machine->boottime - HOUR,
                        .comm = "python3",
                        .anon_bytes = cases[i].anon,
                        .file_bytes = cases[i].file,
                        .shmem_bytes = cases[i].shared};
        machine->kills = (OomKills){.items = &kill, .n = 1};
        Findings findings = run(f, &ready, 0);
        assert_well_formed(&findings);
        assert_non_null(strstr(finding(&findings, "oom-recent")->evidence, cases[i].evidence));
        fixture_free(f);
    }
}

static void test_oom_counts(void **state)
{
    (void)state;
    static const struct {
        int error;
        uint64_t machine;
        uint64_t cgroup;
        int wanted;
        const char *evidence;
    } cases[] = {
        {0, 0, 0, FINE, NULL},
        {0, U64_UNKNOWN, U64_UNKNOWN, FINE, NULL}, /* the log was read and has none */
        {-EPERM, 0, 0, FINE, NULL},                /* no process was killed, with or without the log */
        {-EPERM, 0, U64_UNKNOWN, FINE, NULL},
        {-EPERM, U64_UNKNOWN, 0, SKIPPED, "Operation not permitted"},
        {-EPERM, U64_UNKNOWN, U64_UNKNOWN, SKIPPED, "Operation not permitted"},
        {-EPERM, 3, 0, INFO, "3 processes were killed since the machine started."},
        {-EPERM, 3, 1, WARNING, "1 process was killed since the control group was created."},
        {-EACCES, U64_UNKNOWN, 1, WARNING, "Permission denied"},
        {0, 3, U64_UNKNOWN, INFO, "the kernel log no longer shows it"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.kills_error = cases[i].error;
        f->survey.machine.oom_kills = cases[i].machine;
        f->survey.machine.cgroup.oom_kills = cases[i].cgroup;
        if (cases[i].evidence) {
            Findings findings = run(f, &ready, 0);
            const Finding *found = finding(&findings, "oom-recent");
            assert_non_null(
                strstr(found ? found->evidence : skipped(&findings, "oom-recent"), cases[i].evidence));
            if (found && cases[i].error)
                assert_non_null(fix_with(found, "sudo dmesg -T"));
        }
        EXPECT(f, "oom-recent", cases[i].wanted, i);
    }
}

static void test_disk_low(void **state)
{
    (void)state;
    static const struct {
        bool has;
        FsStat disk;
        bool job;
        int wanted;
    } cases[] = {
        {true, {.size_bytes = 500 * GIB, .available_bytes = 50 * GIB}, true, FINE},
        {true, {.size_bytes = 500 * GIB, .available_bytes = 25 * GIB}, true, FINE},
        {true, {.size_bytes = 500 * GIB, .available_bytes = 25 * GIB - 1}, true, WARNING},
        {true, {.size_bytes = 20000 * GIB, .available_bytes = 50 * GIB}, true, FINE},
        {true, {.size_bytes = 20000 * GIB, .available_bytes = 50 * GIB - 1}, true, WARNING},
        {true, {.size_bytes = 20 * GIB, .available_bytes = 5 * GIB}, true, FINE},
        {true, {.size_bytes = 20 * GIB, .available_bytes = 5 * GIB - 1}, true, WARNING},
        {true, {.size_bytes = 20 * GIB, .available_bytes = GIB}, true, WARNING},
        {true, {.size_bytes = 20 * GIB, .available_bytes = GIB - 1}, true, CRITICAL},
        {true, {.size_bytes = 20 * GIB, .available_bytes = 0}, false, WARNING},
        {true,
         {.size_bytes = 500 * GIB, .available_bytes = 50 * GIB, .inodes = 1000, .inodes_free = 9},
         true,
         WARNING},
        {true,
         {.size_bytes = 500 * GIB, .available_bytes = 50 * GIB, .inodes = 1000, .inodes_free = 10},
         true,
         FINE},
        {true, {.type = 0x73717368, .size_bytes = GIB}, false, SKIPPED}, /* squashfs is always full */
        {true, {.size_bytes = 0}, false, SKIPPED},
        {true, {.size_bytes = U64_UNKNOWN, .available_bytes = U64_UNKNOWN}, false, SKIPPED},
        {false, {0}, false, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.has_disk = cases[i].has;
        f->survey.machine.disk = cases[i].disk;
        if (cases[i].job)
            fixture_job(f, 100, 0);
        EXPECT(f, "disk-low", cases[i].wanted, i);
    }
    static const struct {
        const char *path;
        const char *command; /* NULL: none is offered */
    } paths[] = {
        {"/home/ada/run", "du -xh --max-depth=1 /home/ada/run | sort -h | tail"},
        {"/data/my run", "du -xh --max-depth=1 '/data/my run' | sort -h | tail"},
        {"/a\nb", NULL},
        {NULL, "du -xh --max-depth=1 . | sort -h | tail"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.disk.available_bytes = 0;
        f->survey.machine.disk_path = paths[i].path;
        Findings findings = run(f, &ready, 0);
        assert_well_formed(&findings);
        const Fix *fix = fix_with(finding(&findings, "disk-low"), "du -xh");
        assert_true(!fix == !paths[i].command);
        if (fix)
            assert_string_equal(fix->command, paths[i].command);
        fixture_free(f);
    }
}

static void test_open_files_low(void **state)
{
    (void)state;
    static const struct {
        uint32_t fds;
        uint64_t soft;
        bool readable;
        int wanted;
    } cases[] = {
        {25, 1024, true, FINE},           {819, 1024, true, FINE},
        {820, 1024, true, WARNING},       {972, 1024, true, WARNING},
        {973, 1024, true, CRITICAL},      {5000000, RLIMIT_UNLIMITED, true, FINE},
        {25, U64_UNKNOWN, true, SKIPPED}, {0, 1024, false, SKIPPED},
        {0, 0, true, CRITICAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        Process *process = fixture_job(f, 100, 0);
        process->fds = cases[i].fds;
        process->open_files_soft = cases[i].soft;
        process->readable = cases[i].readable;
        EXPECT(f, "open-files-low", cases[i].wanted, i);
    }
    static const struct {
        uint64_t soft;
        int wanted;
    } idle[] = {{1024, FINE}, {1023, INFO}, {0, INFO}, {RLIMIT_UNLIMITED, FINE}, {U64_UNKNOWN, SKIPPED}};
    for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.limits.open_files_soft = idle[i].soft;
        EXPECT(f, "open-files-low", idle[i].wanted, 100 + i);
    }
}

static void test_open_files_of_running(void **state)
{
    (void)state;
    static const struct {
        uint32_t uid;
        uint64_t hard;
        EnvironmentKind kind;
        const char *command; /* NULL: prlimit is not offered */
        FixNeeds needs;
    } cases[] = {
        {1000, 1048576, ENVIRONMENT_BARE, "for p in 100 101 102; do prlimit --pid $p --nofile=65536:; done",
         NEEDS_NOTHING},
        {1000, 4096, ENVIRONMENT_BARE, "for p in 100 101 102; do prlimit --pid $p --nofile=4096:; done",
         NEEDS_NOTHING},
        {2000, 1048576, ENVIRONMENT_BARE,
         "for p in 100 101 102; do sudo prlimit --pid $p --nofile=65536:; done", NEEDS_ROOT},
        {2000, 1048576, ENVIRONMENT_DOCKER, NULL, NEEDS_NOTHING},
        {1000, 1024, ENVIRONMENT_BARE, NULL, NEEDS_NOTHING},
        {1000, U64_UNKNOWN, ENVIRONMENT_BARE, NULL, NEEDS_NOTHING},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.sandbox.kind = cases[i].kind;
        fixture_job(f, 100, 2);
        fixture_job(f, 200, 1);
        for (size_t j = 0; j < 3; j++) {
            f->processes[j].open_files_hard = cases[i].hard;
            f->processes[j].uid = cases[i].uid;
        }
        f->processes[1].fds = 1000;
        Findings findings = run(f, &ready, 0);
        const Finding *found = finding(&findings, "open-files-low");
        assert_non_null(strstr(found->evidence, "pid 101 (worker) has 1000 of 1024 files open"));
        const Fix *fix = fix_with(found, "prlimit");
        if (!fix != !cases[i].command || (fix && strcmp(fix->command, cases[i].command) != 0))
            fail_msg("case %zu: %s", i, fix ? fix->command : "not offered");
        if (fix)
            assert_int_equal(fix->needs, cases[i].needs);
        fixture_free(f);
    }
}

static void test_max_map_count_low(void **state)
{
    (void)state;
    static const struct {
        uint64_t maps;
        uint64_t limit;
        int wanted;
    } cases[] = {
        {1700, 65530, FINE},           {52423, 65530, FINE},     {52424, 65530, WARNING},
        {62253, 65530, WARNING},       {62254, 65530, CRITICAL}, {1700, U64_UNKNOWN, SKIPPED},
        {U64_UNKNOWN, 65530, SKIPPED}, {1700, 0, CRITICAL},      {1700, UINT64_MAX - 1, FINE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_job(f, 100, 0)->maps = cases[i].maps;
        f->survey.machine.max_map_count = cases[i].limit;
        EXPECT(f, "max-map-count-low", cases[i].wanted, i);
    }
    Fixture *f = fixture_new();
    f->survey.machine.max_map_count = U64_UNKNOWN;
    EXPECT(f, "max-map-count-low", FINE, 100);
}

static void test_workers_exceed_cpus(void **state)
{
    (void)state;
    static const struct {
        int workers;
        double cpus;
        double quota;
        int wanted;
        const char *evidence;
    } cases[] = {
        {4, 4, 0, FINE, NULL},
        {5, 4, 0, WARNING, ". 4 CPUs are granted."},
        {3, 2.5, 2.5, FINE, NULL},
        {4, 2.5, 2.5, WARNING, ". 2.5 CPUs are granted by the control group's quota."},
        {2, 1, 8, WARNING, ". 1 CPU is granted."},       /* the affinity, not the quota */
        {17, 16, 16, WARNING, ". 16 CPUs are granted."}, /* a quota of the whole machine is none */
        {4, 0, 0, SKIPPED, NULL},
        {0, 0, 0, FINE, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_job(f, 100, cases[i].workers);
        f->survey.machine.cpus = cases[i].cpus;
        f->survey.machine.cgroup.cpu_quota = cases[i].quota;
        if (cases[i].evidence) {
            Findings findings = run(f, &ready, 0);
            assert_non_null(strstr(finding(&findings, "workers-exceed-cpus")->evidence, cases[i].evidence));
        }
        EXPECT(f, "workers-exceed-cpus", cases[i].wanted, i);
    }

    /* Two jobs together exceed what each alone does not. */
    Fixture *f = fixture_new();
    fixture_job(f, 100, 10);
    fixture_job(f, 200, 10);
    Findings findings = run(f, &ready, 0);
    assert_non_null(fix_with(finding(&findings, "workers-exceed-cpus"), "num_workers=8 for each trainer"));
    findings = run(f, &ready, 200);
    assert_null(finding(&findings, "workers-exceed-cpus"));
    fixture_free(f);
}

static void test_threads_exceed_cpus(void **state)
{
    (void)state;
    static const struct {
        uint32_t worker_threads;
        uint32_t trainer_threads;
        bool cuda;
        double cpus;
        int wanted;
    } cases[] = {
        {3, 12, false, 2, FINE},   /* nothing but the plumbing */
        {10, 12, false, 16, FINE}, /* 4 x 7 of 16 CPUs */
        {11, 12, false, 16, INFO},   {18, 12, false, 16, INFO},   {19, 12, false, 16, WARNING},
        {3, 76, false, 16, WARNING}, /* the machine's 64 CPUs counted, 16 granted */
        {3, 76, true, 16, INFO},     /* of which CUDA has some */
        {0, 0, false, 16, FINE},     {50, 50, false, 0, SKIPPED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_job(f, 100, 4);
        f->processes[0].threads = cases[i].trainer_threads;
        f->processes[0].cuda = cases[i].cuda;
        for (size_t j = 1; j <= 4; j++)
            f->processes[j].threads = cases[i].worker_threads;
        f->survey.machine.cpus = cases[i].cpus;
        EXPECT(f, "threads-exceed-cpus", cases[i].wanted, i);
    }
}

static void test_start_methods(void **state)
{
    (void)state;
    static const struct {
        StartMethod start;
        bool trainer_cuda;
        bool worker_cuda;
        int after_cuda;
        int use_cuda;
    } cases[] = {
        {START_FORK, true, true, INFO, FINE}, /* inherited descriptors are no use of the GPU */
        {START_FORK, false, false, FINE, FINE},  {START_SPAWN, true, false, FINE, FINE},
        {START_SPAWN, true, true, FINE, INFO},   {START_FORKSERVER, true, true, FINE, INFO},
        {START_UNKNOWN, true, true, FINE, FINE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int j = 0; j < 2; j++) {
            Fixture *f = fixture_new();
            fixture_job(f, 100, 1);
            f->processes[0].cuda = cases[i].trainer_cuda;
            f->processes[1].cuda = cases[i].worker_cuda;
            f->processes[1].start = cases[i].start;
            EXPECT(f, j ? "workers-use-cuda" : "fork-after-cuda", j ? cases[i].use_cuda : cases[i].after_cuda,
                   i);
        }
}

static void test_owners_of_shm(void **state)
{
    (void)state;
    static const struct {
        ShmOwner owner;
        ShmState state;
        int pod;
        int job;
    } cases[] = {
        {SHM_OWNER_UNKNOWN, SHM_OK, FINE, FINE},
        {SHM_OF_POD, SHM_OK, INFO, FINE},
        {SHM_OF_JOB, SHM_OK, FINE, INFO},
        {SHM_OF_POD, SHM_NOT_TMPFS, FINE, FINE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int j = 0; j < 2; j++) {
            Fixture *f = fixture_new();
            f->survey.machine.shm.owner = cases[i].owner;
            f->survey.machine.shm.state = cases[i].state;
            EXPECT(f, j ? "shm-of-job" : "shm-of-pod", j ? cases[i].job : cases[i].pod, i);
        }
    /* logind does not see the job's own. */
    Fixture *f = fixture_new();
    f->survey.machine.uid = 1000;
    f->survey.machine.sandbox.remove_ipc = YES;
    f->survey.machine.shm.owner = SHM_OF_JOB;
    EXPECT(f, "remove-ipc", FINE, 100);
}

static void test_workers_that_are_threads(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_process(f, 100, 1, ROLE_TRAINER, 100);
    EXPECT(f, "workers-are-threads", FINE, 0);
    f = fixture_new();
    fixture_process(f, 100, 1, ROLE_TRAINER, 100)->signs.loaders = 4;
    EXPECT(f, "workers-are-threads", INFO, 1);
}

static void test_copies(void **state)
{
    (void)state;
    static const struct {
        StartMethod start;
        uint64_t uss;
        uint64_t rss;
        uint64_t memory;
        int spawn;
        int fork;
    } cases[] = {
        /* Four workers against a quarter of 64 GiB. */
        {START_SPAWN, 4 * GIB, 5 * GIB, 64 * GIB, WARNING, FINE},
        {START_FORKSERVER, 4 * GIB, 5 * GIB, 64 * GIB, WARNING, FINE},
        {START_SPAWN, 4 * GIB - 1, 5 * GIB, 64 * GIB, FINE, FINE},
        {START_SPAWN, U64_UNKNOWN, 4 * GIB + 20 * MIB, 64 * GIB, WARNING, FINE},
        {START_SPAWN, U64_UNKNOWN, 4 * GIB + 20 * MIB - 1, 64 * GIB, FINE, FINE},
        {START_SPAWN, U64_UNKNOWN, U64_UNKNOWN, 64 * GIB, SKIPPED, FINE},
        {START_SPAWN, 4 * GIB, 5 * GIB, U64_UNKNOWN, FINE, FINE},
        {START_FORK, 4 * GIB, 5 * GIB, 64 * GIB, FINE, WARNING},
        {START_FORK, 4 * GIB - 1, 5 * GIB, 64 * GIB, FINE, FINE},
        {START_FORK, U64_UNKNOWN, 50 * GIB, 64 * GIB, FINE, SKIPPED}, /* RSS counts what is shared */
        {START_UNKNOWN, 50 * GIB, 50 * GIB, 64 * GIB, FINE, FINE},
        {START_SPAWN, UINT64_MAX - 1, 5 * GIB, 64 * GIB, WARNING, FINE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (int j = 0; j < 2; j++) {
            Fixture *f = fixture_new();
            fixture_job(f, 100, 4);
            for (size_t k = 1; k <= 4; k++) {
                f->processes[k].start = cases[i].start;
                f->processes[k].uss_bytes = cases[i].uss;
                f->processes[k].rss_bytes = cases[i].rss;
            }
            f->survey.machine.memory.total_bytes = cases[i].memory;
            EXPECT(f, j ? "fork-copies" : "spawn-copies", j ? cases[i].fork : cases[i].spawn, i);
        }
}

/* What is advised against copies depends on the workers' Python. */
static void test_copies_by_python(void **state)
{
    (void)state;
    static const struct {
        unsigned python, other; /* of three workers, and of the fourth */
        const char *forked, *short_of_memory;
    } cases[] = {
        {12, 12, DOCTOR_FORK_COPIES_FREEZE, DOCTOR_COPIES_FREEZE},
        {14, 14, DOCTOR_FORK_COPIES_FREEZE, DOCTOR_COPIES_FREEZE},
        {11, 11, NULL, "Python 3.11 cannot make it immortal"},
        {15, 15, NULL, "Python 3.15 cannot make it immortal"},
        {12, 11, NULL, DOCTOR_COPIES_FIX},
        {0, 0, NULL, DOCTOR_COPIES_FIX},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_job(f, 100, 4);
        for (size_t k = 1; k <= 4; k++) {
            f->processes[k].start = START_FORK;
            f->processes[k].uss_bytes = 4 * GIB;
            f->processes[k].python = k == 4 ? cases[i].other : cases[i].python;
        }
        f->survey.machine.memory.total_bytes = 64 * GIB;
        f->survey.machine.memory.available_bytes = GIB;
        Findings findings = run(f, &ready, 0);
        const Finding *forked = finding(&findings, "fork-copies");
        const Finding *memory = finding(&findings, "memory-low");
        assert_true(forked && memory && fix_with(forked, "SharedList"));
        assert_int_equal(fix_with(forked, DOCTOR_FORK_COPIES_FREEZE) != NULL, cases[i].forked != NULL);
        assert_non_null(fix_with(memory, cases[i].short_of_memory));
        fixture_free(f);
    }
}

static void test_remove_ipc(void **state)
{
    (void)state;
    static const struct {
        Tristate remove;
        EnvironmentKind kind;
        uint32_t uid;
        bool job;
        bool named;
        int wanted;
    } cases[] = {
        {NO, ENVIRONMENT_BARE, 1000, true, true, FINE},
        {YES, ENVIRONMENT_BARE, 1000, false, false, INFO},
        {YES, ENVIRONMENT_BARE, 1000, true, false, INFO}, /* nothing with a name: nothing to delete */
        {YES, ENVIRONMENT_BARE, 1000, true, true, WARNING},
        {YES, ENVIRONMENT_LXC, 1000, true, true, WARNING},
        {YES, ENVIRONMENT_DOCKER, 1000, true, true, FINE},
        {YES, ENVIRONMENT_BARE, 999, false, false, FINE},
        {YES, ENVIRONMENT_BARE, 0, true, true, WARNING}, /* root asks about a user's job */
        {DONT_KNOW, ENVIRONMENT_BARE, 1000, false, false, SKIPPED},
        {DONT_KNOW, ENVIRONMENT_KUBERNETES, 1000, false, false, FINE},
        {DONT_KNOW, ENVIRONMENT_BARE, 0, false, false, FINE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        f->survey.machine.sandbox.remove_ipc = cases[i].remove;
        f->survey.machine.sandbox.kind = cases[i].kind;
        f->survey.machine.uid = cases[i].uid;
        if (cases[i].job) {
            fixture_busy_job(f, 100, 2, MIB);
            f->segments[0].deleted = !cases[i].named;
        }
        EXPECT(f, "remove-ipc", cases[i].wanted, i);
    }
}

static void test_guard_unavailable(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Findings findings = run(f, &broken, 0);
    const Finding *found = finding(&findings, "guard-unavailable");
    assert_int_equal(found->severity, SEVERITY_INFO);
    assert_string_equal(found->evidence, "Measured: memfd_create does not work here.");
    findings = run(f, &(GuardOffer){0}, 0);
    assert_well_formed(&findings);
    assert_non_null(finding(&findings, "guard-unavailable"));
    EXPECT(f, "guard-unavailable", FINE, 0);
}

static void test_shm_huge_pages(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    f->survey.machine.shm.huge = true;
    EXPECT(f, "shm-huge-pages", INFO, 0);
    f = fixture_new();
    EXPECT(f, "shm-huge-pages", FINE, 1);
}

static void test_unseen_processes(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    f->survey.n_unreadable = 40;
    f->survey.unattributed_bytes = MIB - 1;
    EXPECT(f, "shm-need", FINE, 0);
    f = fixture_new();
    f->survey.n_unreadable = 40;
    f->survey.unattributed_bytes = MIB;
    EXPECT(f, "shm-need", SKIPPED, 1);
    f = fixture_new();
    f->survey.n_unreadable = 40;
    f->survey.unattributed_bytes = 3 * MIB;
    fixture_segment(f, "torch_7_1_0", KIND_TORCH, 3 * MIB, 0); /* a file that no process holds explains it */
    EXPECT(f, "shm-need", FINE, 2);
}

/* Which jobs --pid selects. */
static void test_pid(void **state)
{
    (void)state;
    static const struct {
        int pid;
        int r;
        const char *jobs; /* of which the workers are counted: 3, 5 or 7 */
    } cases[] = {
        {0, 0, "8 workers of 2 trainers"},
        {100, 0, "3 workers of 1 trainer "}, /* a trainer */
        {202, 0, "5 workers of 1 trainer "}, /* a worker */
        {206, 0, "5 workers of 1 trainer "}, /* a manager */
        {50, 0, "8 workers of 2 trainers"},  /* the launcher above both */
        {60, 0, NULL},                       /* another process */
        {12345, -ESRCH, NULL},
        {-1, -ESRCH, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_process(f, 50, 1, ROLE_OTHER, 0);
        fixture_process(f, 55, 50, ROLE_OTHER, 0);
        fixture_process(f, 60, 1, ROLE_OTHER, 0);
        fixture_process(f, 70, 71, ROLE_OTHER, 0); /* a ring, as only a captured tree can have */
        fixture_process(f, 71, 70, ROLE_OTHER, 0);
        fixture_job(f, 100, 3)->ppid = 50;
        fixture_job(f, 200, 5)->ppid = 55;
        fixture_process(f, 206, 200, ROLE_MANAGER, 200);
        f->survey.machine.cpus = 1;
        Findings findings = {0};
        assert_int_equal(checks_run(&f->survey, &ready, cases[i].pid, &f->arena, &findings), cases[i].r);
        const Finding *found = finding(&findings, "workers-exceed-cpus");
        assert_true(!found == !cases[i].jobs);
        if (found && !strstr(found->evidence, cases[i].jobs))
            fail_msg("case %zu: %s", i, found->evidence);
        assert_true(!skipped(&findings, "pid") == !(cases[i].r == 0 && !cases[i].jobs));
        fixture_free(f);
    }
    Fixture *f = fixture_new();
    fixture_process(f, 70, 71, ROLE_OTHER, 0);
    fixture_process(f, 71, 70, ROLE_TRAINER, 71);
    fixture_process(f, 90, 1, ROLE_OTHER, 0);
    Findings findings = run(f, &ready, 90);
    assert_non_null(skipped(&findings, "pid"));
    fixture_free(f);
}

/* Whatever is unknown, nothing crashes and nothing is claimed. */
static void test_nothing_known(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    f->survey.machine = (Machine){
        .memory = {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN},
        .shm = {.state = SHM_UNKNOWN},
        .cgroup = {.memory_limit_bytes = U64_UNKNOWN,
                   .memory_used_bytes = U64_UNKNOWN,
                   .memory_reclaimable_bytes = U64_UNKNOWN,
                   .memory_shmem_bytes = U64_UNKNOWN,
                   .swap_limit_bytes = U64_UNKNOWN,
                   .oom_kills = U64_UNKNOWN},
        .limits = {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN},
        .max_map_count = U64_UNKNOWN,
        .oom_kills = U64_UNKNOWN,
        .kills_error = -EACCES,
        .sandbox = {.kind = ENVIRONMENT_BARE, .remove_ipc = DONT_KNOW},
        .uid = 1000,
    };
    for (int i = 0; i < 2; i++) {
        Findings findings = run(f, &ready, 0);
        assert_well_formed(&findings);
        assert_int_equal(findings.n, 0);
        assert_true(findings.n_skipped >= 8);
        fixture_job(f, 100, 1); /* and now with a job of which nothing is known either */
        for (size_t j = 0; j < 2; j++) {
            Process *process = &f->processes[j];
            process->rss_bytes = process->rss_shmem_bytes = process->pss_bytes = process->uss_bytes =
                process->open_files_soft = process->open_files_hard = process->maps = U64_UNKNOWN;
            process->readable = false;
        }
    }
    fixture_free(f);
}

static void test_worst_first(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_busy_job(f, 100, 20, 10 * MIB);
    f->survey.machine.shm.size_bytes = 64 * MIB;
    f->survey.machine.shm.used_bytes = 60 * MIB;
    f->survey.machine.sandbox.remove_ipc = YES;
    f->survey.machine.memory.available_bytes = 5 * GIB;
    Findings findings = run(f, &broken, 0);
    assert_well_formed(&findings);
    assert_string_equal(findings.items[0].id, "shm-too-small");
    assert_string_equal(findings.items[findings.n - 1].id, "guard-unavailable");
    assert_int_equal(findings_health(&findings), HEALTH_CRITICAL);
    fixture_free(f);
}

/* Runs last. */
static void test_every_check_has_a_case(void **state)
{
    (void)state;
    for (size_t i = 0; check_at(i); i++)
        if (!was_found[i])
            fail_msg("no case above makes %s find something", check_at(i)->id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),
        cmocka_unit_test(test_documented),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_shm_missing),
        cmocka_unit_test(test_shm_size_without_jobs),
        cmocka_unit_test(test_shm_size_with_jobs),
        cmocka_unit_test(test_shm_size_adds_up),
        cmocka_unit_test(test_shm_size_says),
        cmocka_unit_test(test_smaller_batches),
        cmocka_unit_test(test_shm_size_of_some_jobs),
        cmocka_unit_test(test_shm_share_of_memory),
        cmocka_unit_test(test_shm_nearly_full),
        cmocka_unit_test(test_shm_inodes_low),
        cmocka_unit_test(test_shm_orphans),
        cmocka_unit_test(test_orphans_of_whom),
        cmocka_unit_test(test_memory_low),
        cmocka_unit_test(test_cgroup_near_limit),
        cmocka_unit_test(test_memory_pressure),
        cmocka_unit_test(test_swap_low),
        cmocka_unit_test(test_oom_recent),
        cmocka_unit_test(test_oom_at_an_unknown_time),
        cmocka_unit_test(test_oom_says),
        cmocka_unit_test(test_oom_of_another_group),
        cmocka_unit_test(test_oom_memory),
        cmocka_unit_test(test_oom_counts),
        cmocka_unit_test(test_disk_low),
        cmocka_unit_test(test_open_files_low),
        cmocka_unit_test(test_open_files_of_running),
        cmocka_unit_test(test_max_map_count_low),
        cmocka_unit_test(test_workers_exceed_cpus),
        cmocka_unit_test(test_threads_exceed_cpus),
        cmocka_unit_test(test_start_methods),
        cmocka_unit_test(test_owners_of_shm),
        cmocka_unit_test(test_workers_that_are_threads),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_copies_by_python),
        cmocka_unit_test(test_remove_ipc),
        cmocka_unit_test(test_guard_unavailable),
        cmocka_unit_test(test_shm_huge_pages),
        cmocka_unit_test(test_unseen_processes),
        cmocka_unit_test(test_pid),
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_worst_first),
        cmocka_unit_test(test_every_check_has_a_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
