/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>

#include "proc-status.h"
#include "temp-root.h"

#define KIB UINT64_C(1024)

static void test_process(void **state)
{
    (void)state;
    ProcStatus status;
    assert_int_equal(
        proc_status_parse(
            TEXT("Name:\tUid: 7 7 7 7\\nVmRSS: 1 kB\nUmask:\t0022\nState:\tS (sleeping)\nPPid:\t77\n"
                 "Uid:\t1000\t1001\t1000\t1000\nGid:\t5\t5\t5\t5\nGroups:\t4 24 \n"
                 "NStgid:\t12345\t7\nNSpid:\t12345\t7\nKthread:\t0\nVmPeak:\t  9000 kB\n"
                 "VmHWM:\t    5000 kB\nVmRSS:\t    4000 kB\nRssAnon:\t     1000 kB\n"
                 "RssFile:\t    1200 kB\nRssShmem:\t    1800 kB\nVmSwap:\t      30 kB\n"
                 "HugetlbPages:\t       0 kB\nThreads:\t17\nSigCgt:\t0000000180000040\n"
                 "CapEff:\t000001ffffffffff\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n"
                 "Cpus_allowed:\tff\nCpus_allowed_list:\t0-3,7,9-10\n"
                 "voluntary_ctxt_switches:\t5\n"),
            &status),
        0);
    assert_string_equal(status.comm, "Uid: 7 7 7 7\nVmRSS: 1 kB");
    assert_int_equal(status.state, 'S');
    assert_int_equal(status.ppid, 77);
    assert_int_equal(status.uid, 1000);
    assert_int_equal(status.euid, 1001);
    assert_false(status.kernel_thread);
    assert_int_equal(status.rss_bytes, 4000 * KIB);
    assert_int_equal(status.rss_peak_bytes, 5000 * KIB);
    assert_int_equal(status.rss_anon_bytes, 1000 * KIB);
    assert_int_equal(status.rss_file_bytes, 1200 * KIB);
    assert_int_equal(status.rss_shmem_bytes, 1800 * KIB);
    assert_int_equal(status.swap_bytes, 30 * KIB);
    assert_int_equal(status.threads, 17);
    assert_int_equal(status.signals_caught, 0x180000040);
    assert_int_equal(status.caps_effective, 0x1ffffffffff);
    assert_int_equal(status.seccomp, 2);
    assert_true(status.no_new_privs);
    assert_int_equal(status.cpus_allowed, 7);
    assert_int_equal(status.pid_namespaces, 2);
    assert_int_equal(status.inner_pid, 7);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *comm;
    } cases[] = {
        {"Name:\tpython3\n", "python3"},
        {"Name:\ta b\n", "a b"},
        {"Name:\t\\\\n\n", "\\n"},
        {"Name:\tends in \\\n", "ends in \\"},
        {"Name:\t\n", ""},
        {"", ""},
        {"Name:\tkworker/u8:0-events_unbound_and_a_name_of_the_longest_kind_ever_seen\n",
         "kworker/u8:0-events_unbound_and_a_name_of_the_longest_kind_ever"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[256];
        ProcStatus status;
        snprintf(text, sizeof text, "%sUid:\t1\t1\t1\t1\n", cases[i].line);
        assert_int_equal(proc_status_parse(text_of(text), &status), 0);
        assert_string_equal(status.comm, cases[i].comm);
        assert_int_equal(status.ppid, 0);
        assert_int_equal(status.state, 0);
    }
}

static void test_memory(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool kernel_thread;
        uint64_t rss_bytes;
        uint64_t rss_shmem_bytes;
    } cases[] = {
        {"State:\tS (sleeping)\nUid:\t0\t0\t0\t0\nKthread:\t1\nThreads:\t1\n", true, 0, 0},
        {"State:\tI (idle)\nUid:\t0\t0\t0\t0\nThreads:\t1\n", true, 0, 0},
        {"State:\tZ (zombie)\nUid:\t0\t0\t0\t0\nThreads:\t1\n", false, 0, 0},
        {"State:\tZ (zombie)\nUid:\t0\t0\t0\t0\nKthread:\t0\nThreads:\t1\n", false, 0, 0},
        /* before 4.5 */
        {"Uid:\t0\t0\t0\t0\nVmRSS:\t8 kB\nThreads:\t1\n", false, 8 * KIB, U64_UNKNOWN},
        {"Uid:\t0\t0\t0\t0\nVmRSS:\t8 kB\nRssShmem:\t18446744073709551615 kB\nThreads:\t1\n", false, 8 * KIB,
         U64_UNKNOWN},
        /* truncated before the memory lines, and within one */
        {"State:\tS (sleeping)\nUid:\t0\t0\t0\t0\nVmPe", false, U64_UNKNOWN, U64_UNKNOWN},
        {"Uid:\t0\t0\t0\t0\nVmRSS:\t80 kB\nRssShmem:\t1", false, 80 * KIB, U64_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcStatus status;
        assert_int_equal(proc_status_parse(text_of(cases[i].text), &status), 0);
        assert_int_equal(status.kernel_thread, cases[i].kernel_thread);
        assert_int_equal(status.rss_bytes, cases[i].rss_bytes);
        assert_int_equal(status.rss_shmem_bytes, cases[i].rss_shmem_bytes);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "\n\n",
        "Name:\tx\n",
        "Uid:\n",
        "Uid:\t0\n",
        "Uid:\t0\t0", /* truncated */
        "Uid:\t-1\t0\t0\t0\n",
        "Uid:\t4294967296\t0\t0\t0\n",
        "Uids:\t0\t0\t0\t0\n",
        " Uid:\t0\t0\t0\t0\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcStatus status = {.uid = 5};
        assert_int_equal(proc_status_parse(text_of(cases[i]), &status), -EBADMSG);
        assert_int_equal(status.uid, 5);
    }
}

static void test_cpu_list(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        uint32_t count;
    } cases[] = {
        {"0-3,7,9-10", 7},   {"0", 1},    {"0-1\n", 2}, {"0-4294967294", UINT32_MAX},
        {"0-4294967295", 0}, {"", 0},     {",", 0},     {"0,", 0},
        {",0", 0},           {"0,,1", 0}, {"3-1", 0},   {"0-3,2", 0},
        {"1,0", 0},          {"0-", 0},   {"-3", 0},    {"0-1-2", 0},
        {"0 1", 0},          {"0x3", 0},  {"none", 0},  {"4294967296", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(cpu_list_count(text_of(cases[i].list)), cases[i].count);
}

static void test_read_live(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    ProcStatus status;
    assert_int_equal(proc_status_read(&root, 0, &status), 0);
    assert_int_equal(status.uid, getuid());
    assert_int_equal(status.euid, geteuid());
    assert_false(status.kernel_thread);
    assert_true(status.rss_bytes > 0 && status.rss_bytes != U64_UNKNOWN);
    assert_true(status.cpus_allowed > 0);
    assert_int_equal(status.threads, 1);

    int child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_status_read(&root, child, &status), 0);
    assert_false(status.kernel_thread);
    assert_int_equal(status.rss_bytes, 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(proc_status_read(&root, child, &status), -ENOENT);
}

static void test_read_captured_self(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/41/status", "Uid:\t1000\t1000\t1000\t1000\n");
    temp_root_link(&temp, "41", "proc/self");
    const Root *root = temp_root_open(&temp);
    ProcStatus status;
    assert_int_equal(proc_status_read(root, 0, &status), 0);
    assert_int_equal(status.uid, 1000);
    assert_int_equal(proc_status_read(root, 42, &status), -ENOENT);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_cpu_list),
        cmocka_unit_test(test_read_live),
        cmocka_unit_test(test_read_captured_self),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
