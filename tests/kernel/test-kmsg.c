/* SPDX-License-Identifier: Apache-2.0 */
#include "kmsg.h"
#include "temp-root.h"

static OomKills parse(const char *text, Arena *arena)
{
    OomKills kills;
    assert_int_equal(kmsg_parse(text_of(text), arena, &kills), 0);
    return kills;
}

/* Real messages of Linux 6.18, from a version 1 group limited to 64 MiB. A Python program that had named
 * itself "a) b, UID:7 (c" with prctl filled a list with bytearrays; another one, in a group below, touched a
 * memfd of 256 MiB page by page. Taken from dmesg, without the stacks and tables in between. */
static const char real_dmesg[] =
    "[ 1509.015041] a) b, UID:7 (c invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    "[ 1509.015514] Tasks state (memory values in pages):\n"
    "[ 1509.015515] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes "
    "swapents "
    "oom_score_adj name\n"
    "[ 1509.015517] [  11940]     0 11940    19942    17788    16320     1468         0   196608        0    "
    "     "
    "    0 a) b, UID:7 (c\n"
    "[ 1509.015522] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/"
    "oomdata,task_memcg=/oomdata,task=a) b, UID:7 (c,pid=11940,uid=0\n"
    "[ 1509.015541] Memory cgroup out of memory: Killed process 11940 (a) b, UID:7 (c) total-vm:79768kB, "
    "anon-rss:65280kB, file-rss:5872kB, shmem-rss:0kB, UID:0 pgtables:192kB oom_score_adj:0\n"
    "[ 1509.122652] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    "[ 1509.122988] memory: usage 65536kB, limit 65536kB, failcnt 0\n"
    "[ 1509.123001] Memory cgroup stats for /oomdata:\n"
    "[ 1509.123337] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/"
    "oomdata,task_memcg=/oomdata/inner,task=python3,pid=11941,uid=0\n"
    "[ 1509.123358] Memory cgroup out of memory: Killed process 11941 (python3) total-vm:276132kB, "
    "anon-rss:2688kB, file-rss:5616kB, shmem-rss:62336kB, UID:0 pgtables:188kB oom_score_adj:0\n";

static void test_real_dmesg(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    OomKills kills = parse(real_dmesg, &arena);
    assert_int_equal(kills.n, 2);
    const OomKill *kill = &kills.items[0];
    assert_float_equal(kill->boottime, 1509.015541, 1e-6);
    assert_int_equal(kill->pid, 11940);
    assert_string_equal(kill->comm, "a) b, UID:7 (c");
    assert_int_equal(kill->scope, OOM_SCOPE_CGROUP);
    assert_string_equal(kill->cgroup, "/oomdata");
    assert_int_equal(kill->anon_bytes, 65280 * 1024);
    assert_int_equal(kill->file_bytes, 5872 * 1024);
    assert_int_equal(kill->shmem_bytes, 0);
    assert_int_equal(kill->uid, 0);
    kill = &kills.items[1];
    assert_int_equal(kill->pid, 11941);
    assert_string_equal(kill->comm, "python3");
    assert_string_equal(kill->cgroup, "/oomdata");
    assert_int_equal(kill->shmem_bytes, 62336 * 1024);
}

#define SIZES " total-vm:9kB, anon-rss:4kB, file-rss:3kB, shmem-rss:2kB"

/* One kill of pid 42 each, as worded by many kernel versions. */
static void test_wordings(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        double boottime;
        const char *comm;
        const char *cgroup;
        uint64_t anon_bytes;
        uint64_t shmem_bytes;
        OomScope scope;
        uint32_t uid;
    } cases[] = {
        {"the machine, now",
         "python invoked oom-killer: gfp_mask=0x1\n"
         "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/"
         ",mems_allowed=0-1,global_oom,task_memcg=/"
         "user.slice,task=python,pid=42,uid=1000\n"
         "Out of memory: Killed process 42 (python)" SIZES ", UID:1000 pgtables:1kB oom_score_adj:0\n"
         "oom_reaper: reaped process 42 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:2kB\n",
         -1, "python", "", 4096, 2048, OOM_SCOPE_MACHINE, 1000},
        {"the same in /dev/kmsg",
         "4,100,5000000,-;python invoked oom-killer: gfp_mask=0x1\n SUBSYSTEM=memory\n"
         "6,101,5000001,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/"
         ",mems_allowed=0,oom_memcg=/"
         "docker/abc,task_memcg=/docker/abc,task=py\\x5cx\\xff,pid=42,uid=1000\n"
         "3,102,5000002,-;Memory cgroup out of memory: Killed process 42 (py\\x5cx\\xff)" SIZES
         ", UID:1000 pgtables:1kB oom_score_adj:0\n",
         5.000002, "py\\x\xff", "/docker/abc", 4096, 2048, OOM_SCOPE_CGROUP, 1000},
        {"5.0: reason, choice and victim in a line each",
         "[   12.5] "
         "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,"
         "task_memcg=/a/b,task=python,pid=41,uid=0\n"
         "[   12.6] Memory cgroup out of memory: Kill process 41 (python) score 900 or sacrifice child\n"
         "[   12.7] Killed process 42 (worker)" SIZES "\n",
         12.7, "worker", "/a", 4096, 2048, OOM_SCOPE_CGROUP, UINT32_MAX},
        {"4.9 and version 1",
         "[    7.000001] Task in /a/b killed as a result of limit of /a\n"
         "[    7.000002] memory: usage 65536kB, limit 65536kB, failcnt 5\n"
         "[    7.000003] Memory cgroup out of memory: Kill process 42 (python) score 900 or sacrifice child\n"
         "[    7.000004] Killed process 42 (python)" SIZES "\n",
         7.000004, "python", "/a", 4096, 2048, OOM_SCOPE_CGROUP, UINT32_MAX},
        {"the machine, 4.9",
         "Out of memory: Kill process 42 (python) score 900 or sacrifice child\n"
         "Killed process 42 (python) total-vm:9kB, anon-rss:4kB, file-rss:3kB\n",
         -1, "python", "", 4096, U64_UNKNOWN, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"the end of the log alone", "Killed process 42 (python)" SIZES "\n", -1, "python", "", 4096, 2048,
         OOM_SCOPE_UNKNOWN, UINT32_MAX},
        {"the reason alone",
         "[ 3.5] "
         "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/"
         "a,task_memcg="
         "/a,task=python,pid=42,uid=7",
         3.5, "python", "/a", U64_UNKNOWN, U64_UNKNOWN, OOM_SCOPE_CGROUP, 7},
        {"CentOS 7",
         "Killed process 42 (python), UID 1000, total-vm:9kB, anon-rss:4kB, file-rss:3kB, shmem-rss:2kB\n",
         -1, "python", "", 4096, 2048, OOM_SCOPE_UNKNOWN, 1000},
        {"CentOS 6", "Killed process 42, UID 48, (httpd) total-vm:9kB, anon-rss:4kB, file-rss:3kB\n", -1,
         "httpd", "", 4096, U64_UNKNOWN, OOM_SCOPE_UNKNOWN, 48},
        {"no sizes at all", "Out of memory: Killed process 42 (python).\n", -1, "python", "", U64_UNKNOWN,
         U64_UNKNOWN, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"dmesg -T",
         "[Mon Nov 16 10:11:12 2026] Out of memory: Killed process 42 (python)" SIZES
         ", UID:0 pgtables:1kB\n",
         -1, "python", "", 4096, 2048, OOM_SCOPE_MACHINE, 0},
        {"the caller's number after the time",
         "[  123.456789][ T4242] Out of memory: Killed process 42 (python)" SIZES "\n", 123.456789, "python",
         "", 4096, 2048, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"syslog(2)", "<3>[  123.5] Out of memory: Killed process 42 (python)" SIZES "\n", 123.5, "python",
         "", 4096, 2048, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"journalctl -k",
         "Nov 16 10:11:12 node7 kernel: Out of memory: Killed process 42 (python)" SIZES "\n", -1, "python",
         "", 4096, 2048, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"names that look like the line itself",
         "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/"
         ",task=a,pid=1,uid=2,pid=42,uid=3\n"
         "Out of memory: Killed process 42 (a,pid=1,uid=2)" SIZES ", UID:3 pgtables:1kB\n",
         -1, "a,pid=1,uid=2", "", 4096, 2048, OOM_SCOPE_MACHINE, 3},
        {"a name with the words in it", "Out of memory: Killed process 42 (x) total-vm:1kB)" SIZES "\n", -1,
         "x) total-vm:1kB", "", 4096, 2048, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"an allocating task",
         "Out of memory (oom_kill_allocating_task): Killed process 42 (python)" SIZES "\n", -1, "python", "",
         4096, 2048, OOM_SCOPE_MACHINE, UINT32_MAX},
        {"figures that cannot be",
         "Out of memory: Killed process 42 (python) total-vm:9kB, anon-rss:99999999999999999999kB, "
         "file-rss:xkB, "
         "shmem-rss:18446744073709551615kB, UID:99999999999 pgtables:1kB",
         -1, "python", "", U64_UNKNOWN, U64_UNKNOWN, OOM_SCOPE_MACHINE, UINT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        OomKills kills = parse(cases[i].text, &arena);
        if (kills.n != 1)
            fail_msg("%s: %zu kills", cases[i].name, kills.n);
        const OomKill *kill = &kills.items[0];
        if (kill->pid != 42 || strcmp(kill->comm, cases[i].comm) != 0 || kill->scope != cases[i].scope ||
            strcmp(kill->cgroup, cases[i].cgroup) != 0 || kill->anon_bytes != cases[i].anon_bytes ||
            kill->shmem_bytes != cases[i].shmem_bytes || kill->uid != cases[i].uid)
            fail_msg("%s: pid %d, name %s, scope %d, group %s, anon %llu, shmem %llu, uid %u", cases[i].name,
                     kill->pid, kill->comm, (int)kill->scope, kill->cgroup,
                     (unsigned long long)kill->anon_bytes, (unsigned long long)kill->shmem_bytes, kill->uid);
        assert_float_equal(kill->boottime, cases[i].boottime, 1e-6);
    }
}

static void test_no_kill(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "[",
        "[ 1.5",
        "[ 1.5]",
        "1,2,3,-;",
        ";;;;",
        "oom_reaper: reaped process 42 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n",
        "python invoked oom-killer: gfp_mask=0x1\n",
        "Out of memory: Kill process 42 (python) score 900 or sacrifice child\n",
        "Task in /a killed as a result of limit of /b\n",
        "Killed process (python)\n",
        "Killed process 0 (python)\n",
        "Killed process 99999999999 (python)\n",
        "Killed process 42\n",
        "Killed process 42 (pyth",
        "my training said: Killed process 42 (python)\n",
        " Killed process 42 (python)\n", /* lines that follow a record of /dev/kmsg are not messages */
        "Killed process  invoked oom-killer: gfp_mask=0x1\n",
        "oom-kill:constraint=CONSTRAINT_MEMCG,task=x,pid=,uid=0\n",
        "oom-kill:constraint=\n",
        ("oom-kill:constraint=CONSTRAINT_NONE,task=x,pid=42,uid=0\n"
         "Out of memory: OOM victim 42 (x) is already exiting. Skip killing the task\n"),
        "\xff\xfe\xfd",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        _cleanup_arena_ Arena arena = {0};
        size_t n = parse(texts[i], &arena).n;
        if (n != 0)
            fail_msg("%zu kills in: %s", n, texts[i]);
    }
    _cleanup_arena_ Arena arena = {0};
    OomKills kills;
    assert_int_equal(kmsg_parse((Text){0}, &arena, &kills), 0);
    assert_int_equal(kills.n, 0);
}

/* With memory.oom.group, the reason is printed only once. When kills come fast, the kernel may omit it; then
 * the reason of an earlier kill must not be used. */
static void test_group_kill(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    OomKills kills = parse("[ 10.0] "
                           "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/job,task_memcg=/"
                           "job,task=a,pid=1,uid=0\n"
                           "[ 10.0] Memory cgroup out of memory: Killed process 1 (a)" SIZES "\n"
                           "[ 10.1] Tasks in /job are going to be killed due to memory.oom.group set\n"
                           "[ 10.1] Memory cgroup out of memory: Killed process 1 (a)" SIZES "\n"
                           "[ 10.2] Memory cgroup out of memory: Killed process 2 (b)" SIZES "\n"
                           "[ 99.0] Memory cgroup out of memory: Killed process 3 (c)" SIZES "\n",
                           &arena);
    assert_int_equal(kills.n, 3);
    assert_int_equal(kills.items[1].pid, 2);
    assert_string_equal(kills.items[1].cgroup, "/job");
    assert_int_equal(kills.items[2].pid, 3);
    assert_int_equal(kills.items[2].scope, OOM_SCOPE_CGROUP);
    assert_string_equal(kills.items[2].cgroup, "");
}

/* A reason whose kill line is missing must not be applied to the next victim. */
static void test_reason_stays_with_its_victim(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    OomKills kills =
        parse("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a,task=x,"
              "pid=1,uid=5\n"
              "Killed process 2 (y)" SIZES "\n",
              &arena);
    assert_int_equal(kills.n, 2);
    assert_int_equal(kills.items[0].pid, 1);
    assert_string_equal(kills.items[0].cgroup, "/a");
    assert_int_equal(kills.items[1].pid, 2);
    assert_int_equal(kills.items[1].scope, OOM_SCOPE_UNKNOWN);
    assert_string_equal(kills.items[1].cgroup, "");
    assert_true(kills.items[1].uid == UINT32_MAX);
}

static void test_newest_are_kept(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    for (int pid = 1; pid <= 3 * KMSG_KILLS_MAX + 5; pid++)
        assert_int_equal(
            buffer_printf(&text, "[ %d.5] Out of memory: Killed process %d (p)" SIZES "\n", pid, pid), 0);
    _cleanup_arena_ Arena arena = {0};
    OomKills kills = parse(buffer_text(&text), &arena);
    assert_int_equal(kills.n, KMSG_KILLS_MAX);
    for (size_t i = 0; i < kills.n; i++)
        assert_int_equal(kills.items[i].pid, 2 * KMSG_KILLS_MAX + 6 + (int)i);
}

static void test_long_names_are_cut(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    assert_int_equal(
        buffer_append_text(&text, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/"), 0);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(buffer_append_text(&text, "a"), 0);
    assert_int_equal(buffer_append_text(&text, ",task_memcg=/a,task="), 0);
    for (unsigned i = 0; i < 5000; i++)
        assert_int_equal(buffer_append_text(&text, "b"), 0);
    assert_int_equal(buffer_append_text(&text, ",pid=3,uid=0\n"), 0);
    _cleanup_arena_ Arena arena = {0};
    OomKills kills = parse(buffer_text(&text), &arena);
    assert_int_equal(kills.n, 1);
    assert_int_equal(strlen(kills.items[0].comm), sizeof kills.items[0].comm - 1);
    assert_int_equal(strlen(kills.items[0].cgroup), sizeof kills.items[0].cgroup - 1);
}

static void test_read(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    OomKills kills;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    assert_int_equal(kmsg_read(temp_root_open(&temp), &arena, &kills), -EPERM);
    temp_root_write(&temp, "dev/kmsg", real_dmesg);
    assert_int_equal(kmsg_read(&temp.root, &arena, &kills), 0);
    assert_int_equal(kills.n, 2);
    temp_root_free(&temp);

    /* Whatever this machine's log contains, and whether or not we may read it, this must neither crash nor
     * block. */
    Root root;
    assert_int_equal(root_open("/", &root), 0);
    int r = kmsg_read(&root, &arena, &kills);
    assert_true(r == 0 || r == -EPERM || r == -EACCES || r == -ENOSYS);
    root_close(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_dmesg),
        cmocka_unit_test(test_wordings),
        cmocka_unit_test(test_no_kill),
        cmocka_unit_test(test_group_kill),
        cmocka_unit_test(test_reason_stays_with_its_victim),
        cmocka_unit_test(test_newest_are_kept),
        cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
