/* SPDX-License-Identifier: Apache-2.0 */
/* What people and scripts get of hostile and of empty findings: lines that fit, JSON that parses. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show-clean.h"
#include "show-doctor.h"
#include "show-explain.h"
#include "show-ps.h"

#define MIB     (UINT64_C(1) << 20)
#define HOSTILE "python\n\033[31m \xff(evil) \\ 名前 --option value --option value --option value"

static int holders[] = {200, 201};

static Process processes[] = {
    {.pid = 200,
     .role = ROLE_TRAINER,
     .job = 200,
     .command = {HOSTILE, sizeof HOSTILE - 1},
     .has_memory = true,
     .readable = true,
     .rss_bytes = 900 * MIB,
     .pss_bytes = 512 * MIB,
     .uss_bytes = 256 * MIB,
     .shm_bytes = 32 * MIB,
     .fds = 12,
     .threads = 3,
     .uid = 1000},
    {.pid = 201,
     .role = ROLE_WORKER,
     .job = 200,
     .ppid = 200,
     .start = START_SPAWN,
     .command = {"w", 1},
     .has_memory = true,
     .readable = true,
     .rss_bytes = 100 * MIB,
     .pss_bytes = U64_UNKNOWN,
     .uss_bytes = U64_UNKNOWN,
     .fds = 5,
     .threads = 1},
    {.pid = 4194303,
     .command = {"secret", 6},
     .has_memory = true,
     .readable = false,
     .rss_bytes = U64_UNKNOWN,
     .pss_bytes = U64_UNKNOWN,
     .uss_bytes = U64_UNKNOWN,
     .rss_shmem_bytes = U64_UNKNOWN,
     .shm_bytes = 1},
};

static Segment segments[] = {
    {.name = {"torch_200_123456789012345678901234567890_1", 42},
     .device = {0, 25},
     .inode = 7,
     .size_bytes = 64 * MIB,
     .allocated_bytes = 32 * MIB,
     .deleted = true,
     .on_mount = true,
     .kind = KIND_TORCH,
     .holders = holders,
     .n_holders = 2},
    {.name = {"odd \n\xfe name", 11},
     .device = {0, 25},
     .inode = 8,
     .size_bytes = 1,
     .allocated_bytes = 4096,
     .on_mount = true},
    {.name = {"pool", 4},
     .device = {0, 1},
     .inode = UINT64_C(1) << 40,
     .size_bytes = 10 * MIB,
     .allocated_bytes = 9 * MIB,
     .allocated_estimated = true,
     .backing = BACKING_MEMFD,
     .kind = KIND_SHMGUARD,
     .holders = holders,
     .n_holders = 1},
};

static const Survey survey = {
    .machine = {.memory = {32768 * MIB, 1, 20000 * MIB, 1, 1, 0, U64_UNKNOWN},
                .shm = {.state = SHM_OK,
                        .size_bytes = 64 * MIB,
                        .used_bytes = 48 * MIB,
                        .available_bytes = 16 * MIB,
                        .inodes = 100,
                        .inodes_free = 10,
                        .mounted = true},
                .cgroup = {.version = 2, .memory_limit_bytes = 8192 * MIB, .memory_used_bytes = 10 * MIB},
                .limits = {1024, RLIMIT_UNLIMITED, 0, 0},
                .max_map_count = U64_UNKNOWN,
                .cpus = 1.5,
                .sandbox = {.kind = ENVIRONMENT_DOCKER, .runtime = "containerd"}},
    .processes = processes,
    .n_processes = ARRAY_SIZE(processes),
    .segments = segments,
    .n_segments = ARRAY_SIZE(segments),
    .n_unreadable = 1,
    .attributed_bytes = 32 * MIB,
    .unattributed_bytes = 16 * MIB,
    .memfd_bytes = 9 * MIB,
};

static Fix fix_items[] = {
    {"Start the container with a larger /dev/shm, large enough for all that runs in it, with room to spare.",
     "docker run --shm-size=8g IMAGE", NEEDS_RESTART},
    {"Mount memory.", "volumes:\n- name: shm\n  emptyDir: {medium: Memory}", NEEDS_ADMIN},
    {"Use fewer workers.", NULL, NEEDS_NOTHING},
    {"Remount.", "mount -o remount,size=8g /dev/shm", NEEDS_ROOT},
};
static const Fixes fixes = {fix_items, ARRAY_SIZE(fix_items), 0};

static Finding finding_items[] = {
    {"shm-too-small",
     SEVERITY_CRITICAL,
     "/dev/shm is too small",
     "64.0 MiB (measured) \xff\033[2J",
     {fix_items, ARRAY_SIZE(fix_items), 0}},
    {"open-files-low", SEVERITY_WARNING, "Few files may be open", "1024", {0}},
    {"remove-ipc", SEVERITY_INFO, "Segments may vanish at logout", "RemoveIPC=yes", {0}},
};
static const char *skipped[] = {"oom-recent: the kernel log may not be read (Operation not permitted)"};
static const Findings findings = {finding_items, ARRAY_SIZE(finding_items), 0, skipped, 1, 0};
static const GuardOffer guard = {.why_not = "memfd_create is refused here"};

static const char *evidence[] = {"a worker died of SIGBUS"};
static const char *matched[] = {"RuntimeError: \\x1b[31m bus error"};
static const char *notes[] = {"\"file_system\" uses the same /dev/shm and dies the same death."};

/* Everything that is shown, one after the other. */
typedef int (*Print)(const Terminal *terminal, bool json);

static PsView view_make(Arena *arena, const Survey *of, bool all)
{
    PsView view;
    assert_int_equal(ps_view_make(of, &(PsSelection){.all = all}, arena, &view), 0);
    return view;
}

static int print_ps(const Terminal *terminal, bool json)
{
    _cleanup_arena_ Arena arena = {0};
    PsView view = view_make(&arena, &survey, true);
    if (json)
        return json_ps(terminal->out, terminal->is_tty, &view);
    show_ps(terminal, &view, false);
    return 0;
}

static int print_segments(const Terminal *terminal, bool json)
{
    _cleanup_arena_ Arena arena = {0};
    PsView view = view_make(&arena, &survey, false);
    if (json)
        return json_ps(terminal->out, terminal->is_tty, &view);
    show_ps(terminal, &view, true);
    return 0;
}

static int print_nothing(const Terminal *terminal, bool json)
{
    static const Survey empty = {.machine.shm.state = SHM_ABSENT};
    _cleanup_arena_ Arena arena = {0};
    PsView view = view_make(&arena, &empty, true);
    if (json)
        return json_ps(terminal->out, terminal->is_tty, &view);
    show_ps(terminal, &view, true);
    show_ps(terminal, &view, false);
    return 0;
}

static int print_doctor(const Terminal *terminal, bool json)
{
    if (json)
        return json_doctor(terminal->out, terminal->is_tty, &survey.machine, &guard, &findings);
    show_doctor(terminal, &survey.machine, &guard, &findings);
    return 0;
}

static int print_healthy(const Terminal *terminal, bool json)
{
    static const Machine machine = {.shm = {.state = SHM_OK}};
    static const GuardOffer ready = {.ready = true};
    static const Findings none = {0};
    if (json)
        return json_doctor(terminal->out, terminal->is_tty, &machine, &ready, &none);
    show_doctor(terminal, &machine, &ready, &none);
    return 0;
}

static int print_explanation(const Terminal *terminal, bool json)
{
    Diagnosis explanation = {
        .cause = {CAUSE_SHM_EXHAUSTED, 0.9, "/dev/shm was full. \xff", evidence, 1, 0, 77},
        .detail = "worker",
        .matched = matched,
        .n_matched = 1,
        .notes = notes,
        .n_notes = 1,
        .fixes = fixes,
    };
    if (json)
        return json_explanation(terminal->out, terminal->is_tty, &explanation);
    show_explanation(terminal, &explanation);
    return 0;
}

static int print_cleaning(const Terminal *terminal, bool json)
{
    Cleaned removed[] = {{&segments[0], NULL}};
    Cleaned kept[] = {{&segments[1], "not of a kind that shmguard knows"},
                      {&segments[2], "held by \xff pid 200"}};
    Cleaning cleaning = {
        .dry_run = true, .removed = {removed, 1, 0}, .kept = {kept, 2, 0}, .freed_bytes = 32 * MIB};
    if (json)
        return json_cleaning(terminal->out, terminal->is_tty, &cleaning);
    show_cleaning(terminal, &cleaning);
    return 0;
}

static const Print prints[] = {print_ps,      print_segments,    print_nothing, print_doctor,
                               print_healthy, print_explanation, print_cleaning};

static char *printed(Print print, unsigned columns, bool json, bool indented)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    Terminal terminal = {.out = out, .columns = columns, .utf8 = true, .is_tty = indented};
    assert_int_equal(print(&terminal, json), 0);
    fclose(out);
    return text;
}

static void test_lines_fit_and_are_harmless(void **state)
{
    (void)state;
    static const unsigned widths[] = {80, 100, 120, 200};
    for (size_t i = 0; i < ARRAY_SIZE(prints); i++)
        for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
            _cleanup_free_ char *text = printed(prints[i], widths[w], false, false);
            assert_true(strlen(text) > 0);
            for (const char *c = text; *c; c++)
                assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
            assert_null(strchr(text, '\xff'));
            TEXT_FOR_EACH_LINE (line, text_of(text)) {
                if (text_columns(line) > widths[w])
                    fail_msg("wider than %u: %.*s", widths[w], (int)line.size, line.data);
                assert_false(text_ends(line, " "));
            }
        }
}

static void test_json_parses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(prints); i++) {
        _cleanup_free_ char *compact = printed(prints[i], 80, true, false);
        _cleanup_free_ char *indented = printed(prints[i], 80, true, true);
        json_error_t error;
        json_t *a = json_loads(compact, JSON_REJECT_DUPLICATES, &error);
        json_t *b = json_loads(indented, JSON_REJECT_DUPLICATES, &error);
        if (!a || !b)
            fail_msg("%s: %s", error.text, compact);
        assert_true(json_equal(a, b));
        assert_true(json_is_string(json_object_get(a, "schema")));
        assert_true(strchr(compact, '\n') == compact + strlen(compact) - 1);
        json_decref(a);
        json_decref(b);
    }
}

static json_t *parsed(Print print)
{
    _cleanup_free_ char *text = printed(print, 80, true, false);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    return root;
}

/* The names that scripts rely on. */
static void test_json_fields(void **state)
{
    (void)state;
    json_t *root = parsed(print_ps);
    const char *schema = NULL;
    int pid = 0;
    int ppid = 0;
    int n_fds = 0;
    int threads = 0;
    const char *role = NULL;
    const char *command = NULL;
    json_int_t rss = 0;
    json_int_t pss = 0;
    json_int_t uss = 0;
    json_int_t shm = 0;
    json_t *items = NULL;
    json_t *segment_items = NULL;
    json_int_t attributed = 0;
    json_int_t unattributed = 0;
    json_int_t memfd = 0;
    json_int_t size = 0;
    assert_int_equal(json_unpack(root, "{s:s, s:{s:I}, s:o, s:o, s:I, s:I, s:I}", "schema", &schema, "shm",
                                 "size", &size, "processes", &items, "segments", &segment_items, "attributed",
                                 &attributed, "unattributed", &unattributed, "memfd", &memfd),
                     0);
    assert_string_equal(schema, "shmguard.ps/1");
    assert_int_equal(size, 64 * MIB);
    assert_int_equal(attributed, 32 * MIB);
    assert_int_equal(json_array_size(items), 3);
    assert_int_equal(json_unpack(json_array_get(items, 0),
                                 "{s:i, s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:i}", "pid", &pid, "ppid",
                                 &ppid, "role", &role, "command", &command, "rss", &rss, "pss", &pss, "uss",
                                 &uss, "shm", &shm, "fds", &n_fds, "threads", &threads),
                     0);
    assert_int_equal(pid, 200);
    assert_string_equal(role, "trainer");
    assert_true(strncmp(command, "python\\n\\x1b[31m \\xff(evil) \\\\ 名前", 33) == 0);
    json_t *worker = json_array_get(items, 1);
    assert_true(json_is_null(json_object_get(worker, "pss")));
    assert_string_equal(json_string_value(json_object_get(worker, "start_method")), "spawn");
    json_t *unreadable = json_array_get(items, 2);
    assert_true(json_is_null(json_object_get(unreadable, "shm")));
    assert_true(json_is_null(json_object_get(unreadable, "fds")));
    assert_true(json_is_null(json_object_get(unreadable, "job")));

    json_t *estimated = NULL;
    for (size_t i = 0; i < json_array_size(segment_items); i++)
        if (json_integer_value(json_object_get(json_array_get(segment_items, i), "inode")) == INT64_C(1)
                                                                                                  << 40)
            estimated = json_array_get(segment_items, i);
    assert_non_null(estimated);
    assert_string_equal(json_string_value(json_object_get(estimated, "allocated_source")), "estimated");
    assert_string_equal(json_string_value(json_object_get(estimated, "backing")), "memfd");
    assert_string_equal(json_string_value(json_object_get(estimated, "device")), "0:1");
    assert_true(json_is_null(json_object_get(estimated, "uid")));
    size_t known = 0;
    for (size_t i = 0; i < json_array_size(segment_items); i++)
        known += json_is_integer(json_object_get(json_array_get(segment_items, i), "uid"));
    assert_int_equal(known, json_array_size(segment_items) - 1);
    assert_string_equal(json_string_value(json_object_get(estimated, "orphan")), "no");
    assert_true(json_is_false(json_object_get(estimated, "deleted")));
    json_decref(root);

    root = parsed(print_doctor);
    json_t *limits = json_object_get(root, "limits");
    assert_true(json_integer_value(json_object_get(limits, "open_files_hard")) == INT64_MAX);
    assert_true(json_is_null(json_object_get(limits, "max_map_count")));
    assert_string_equal(json_string_value(json_object_get(root, "verdict")), "critical");
    assert_true(json_is_false(json_object_get(json_object_get(root, "environment"), "guard_ready")));
    json_decref(root);

    root = parsed(print_nothing);
    assert_true(json_is_null(json_object_get(json_object_get(root, "shm"), "size")));
    json_decref(root);
}

static void test_segments_table(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(print_segments, 80, false, false);
    assert_non_null(strstr(text, "torch_200_"));
    assert_non_null(strstr(text, "67890_1 "));
    assert_non_null(strstr(text, "200 +1"));
    assert_non_null(strstr(text, "memfd:pool"));
    assert_non_null(strstr(text, "~9.0 MiB"));
    assert_non_null(strstr(text, "odd \\n\\xfe name"));
    assert_non_null(strstr(text, "total: 3 segments"));
    assert_non_null(strstr(text, "1 process of other users could not be read"));
}

static void test_commands_can_be_copied(void **state)
{
    (void)state;
    _cleanup_free_ char *text = printed(print_doctor, 80, false, false);
    assert_non_null(strstr(text, "\n         docker run --shm-size=8g IMAGE\n"));
    assert_non_null(strstr(text, "\n         volumes:\n         - name: shm\n           emptyDir:"));
    assert_non_null(strstr(text, "✗ critical: /dev/shm is too small [shm-too-small]\n"));
    assert_non_null(strstr(text, "verdict: ✗ critical (1 critical finding, 1 warning, 1 note)\n"));
}

int main(void)
{
    if (!setlocale(LC_CTYPE, "C.UTF-8") && !setlocale(LC_CTYPE, "en_US.UTF-8")) {
        fputs("no UTF-8 locale here: skipped\n", stderr);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_fit_and_are_harmless),
        cmocka_unit_test(test_json_parses),
        cmocka_unit_test(test_json_fields),
        cmocka_unit_test(test_segments_table),
        cmocka_unit_test(test_commands_can_be_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
