/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>

#include "proc-stat.h"
#include "temp-root.h"

#define TAIL                                                                                                 \
    " S 1 12 3 34816 12 4194560 100 200 5 6 70 80 -1 -2 20 0 9 0 5555 6000 7000 18446744073709551615 1\n"

static void test_comm(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *comm;
    } cases[] = {
        {"12 (python3)" TAIL, "python3"},
        {"12 (a b)" TAIL, "a b"},
        {"12 ())" TAIL, ")"},
        {"12 (()" TAIL, "("},
        {"12 ()" TAIL, ""},
        {"12 (x) R 1 (y)" TAIL, "x) R 1 (y"},
        {"12 (new\nline)" TAIL, "new\nline"},
        {"12 (\xff\t)" TAIL, "\xff\t"},
        {"12 (kworker/u8:0-events_unbound_and_a_name_of_the_longest_kind_ever)" TAIL,
         "kworker/u8:0-events_unbound_and_a_name_of_the_longest_kind_ever"},
        {"12 (kworker/u8:0-events_unbound_and_a_name_of_the_longest_kind_ever_seen)" TAIL,
         "kworker/u8:0-events_unbound_and_a_name_of_the_longest_kind_ever"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcStat stat;
        assert_int_equal(proc_stat_parse(text_of(cases[i].text), &stat), 0);
        assert_string_equal(stat.comm, cases[i].comm);
        assert_int_equal(stat.pid, 12);
        assert_int_equal(stat.state, 'S');
        assert_int_equal(stat.ppid, 1);
        assert_int_equal(stat.pgrp, 12);
        assert_int_equal(stat.session, 3);
        assert_int_equal(stat.minor_faults, 100);
        assert_int_equal(stat.major_faults, 5);
        assert_int_equal(stat.user_ticks, 70);
        assert_int_equal(stat.system_ticks, 80);
        assert_int_equal(stat.threads, 9);
        assert_int_equal(stat.start_ticks, 5555);
    }
}

static void test_reaped(void **state)
{
    (void)state;
    ProcStat stat;
    assert_int_equal(
        proc_stat_parse(TEXT("7 (gone) X 0 -1 -1 0 -1 4 0 0 0 0 0 0 0 0 20 0 0 0 99 0 0\n"), &stat), 0);
    assert_int_equal(stat.ppid, 0);
    assert_int_equal(stat.pgrp, -1);
    assert_int_equal(stat.session, -1);
    assert_int_equal(stat.threads, 0);
}

/* Fields 24 to 51, which do not matter here. */
#define UNTIL_ENDED   " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28"
#define BEFORE(state) "7 (gone) " state " 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99 0"

static void test_ended(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int ended;
    } cases[] = {
        {BEFORE("Z") UNTIL_ENDED " 9\n", 9},
        {BEFORE("Z") UNTIL_ENDED " 256\n", 256},
        {BEFORE("Z") UNTIL_ENDED " 0\n", 0},
        {BEFORE("Z") UNTIL_ENDED " x\n", 0},
        {BEFORE("Z") UNTIL_ENDED "\n", 0},
        {BEFORE("Z") " 1 2 3\n", 0},
        {BEFORE("Z"), 0},
        {BEFORE("t") UNTIL_ENDED " 1407\n", 0},
        {BEFORE("S") UNTIL_ENDED " 9\n", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcStat stat;
        assert_int_equal(proc_stat_parse(text_of(cases[i].text), &stat), 0);
        if (stat.ended != cases[i].ended)
            fail_msg("%s: %d", cases[i].text, stat.ended);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "\n",
        ")",
        "12",
        "12 (",
        "12 (python3",
        "12 python3)" TAIL,
        "12(python3)" TAIL,
        "(python3)" TAIL,
        ") (" TAIL,
        "0 (x)" TAIL,
        "-12 (x)" TAIL,
        "99999999999 (x)" TAIL,
        "12 (x)",
        "12 (x) SS 1 12 3 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n",
        "12 (x) S one 12 3 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n",
        "12 (x) S - 12 3 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n",
        "12 (x) S 2147483648 12 3 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n",
        "12 (x) S 1 12 3 0 -1 4 -1 2 3 4 5 6 7 8 20 0 1 0 99 0\n",
        "12 (x) S 1 12 3 0 -1 4 1 2 3 4 18446744073709551616 6 7 8 20 0 1 0 99 0\n",
        "12 (x) S 1 12 3 0 -1 4 1 2 3 4 5 6 7 8 20 0 4294967296 0 99 0\n",
        "12 (x) S 1 12 3 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 9", /* truncated */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ProcStat stat = {.pid = 5};
        assert_int_equal(proc_stat_parse(text_of(cases[i]), &stat), -EBADMSG);
        assert_int_equal(stat.pid, 5);
    }
}

static void test_read_live(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    ProcStat stat;
    assert_int_equal(proc_stat_read(&root, getpid(), &stat), 0);
    assert_int_equal(stat.pid, getpid());
    assert_int_equal(stat.ppid, getppid());
    assert_int_equal(stat.state, 'R');
    assert_int_equal(stat.threads, 1);

    int child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(proc_stat_read(&root, child, &stat), 0);
    assert_int_equal(stat.state, 'Z');
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(proc_stat_read(&root, child, &stat), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comm),    cmocka_unit_test(test_reaped),    cmocka_unit_test(test_ended),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_read_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
