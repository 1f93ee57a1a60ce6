/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "maps.h"
#include "temp-root.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        MapEntry entry;
    } cases[] = {
        {"7f00-8f00 rw-s 00001000 00:19 42                         /dev/shm/torch_1",
         {.shared = true,
          .device = {0, 0x19},
          .inode = 42,
          .offset = 4096,
          .path = TEXT("/dev/shm/torch_1")}},
        {"7f00-8f00 rw-s 00000000 00:01 18446744073709551615       /memfd:x y (deleted)",
         {.shared = true,
          .device = {0, 1},
          .inode = UINT64_MAX,
          .path = TEXT("/memfd:x y"),
          .deleted = true}},
        {"7f00-8f00 r-xp 00000000 103:0a 7 /usr/lib/a.so",
         {.executable = true, .device = {0x103, 10}, .inode = 7, .path = TEXT("/usr/lib/a.so")}},
        {"7f00-8f00 rw-p 00000000 00:00 0 ", {.path = TEXT("")}},
        {"7f00-8f00 rw-p 00000000 00:00 0", {.path = TEXT("")}},
        {"7f00-8f00 rw-p 00000000 00:00 0                          [stack]", {.path = TEXT("[stack]")}},
        {"7f00-8f00 rw-s 00000000 00:01 3                          /dev/zero (deleted)",
         {.shared = true, .device = {0, 1}, .inode = 3, .path = TEXT("/dev/zero"), .deleted = true}},
        {"7f00-8f00 rw-s 00000000 00:19 4                          /a\\012b (deleted) (deleted)",
         {.shared = true,
          .device = {0, 0x19},
          .inode = 4,
          .path = TEXT("/a\\012b (deleted)"),
          .deleted = true}},
        {"7f00-8f00 rw-s 00000000 00:19 4                          /ends in a blank ",
         {.shared = true, .device = {0, 0x19}, .inode = 4, .path = TEXT("/ends in a blank ")}},
        {"7f00-8f00 rw-s 00000000 00:19 4                          /\t\r(deleted)",
         {.shared = true, .device = {0, 0x19}, .inode = 4, .path = TEXT("/\t\r(deleted)")}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const MapEntry *expected = &cases[i].entry;
        MapEntry entry;
        assert_int_equal(maps_parse_line(text_of(cases[i].line), &entry), 0);
        assert_int_equal(entry.start, 0x7f00);
        assert_int_equal(entry.end, 0x8f00);
        assert_int_equal(entry.shared, expected->shared);
        assert_int_equal(entry.executable, expected->executable);
        assert_true(device_equal(entry.device, expected->device));
        assert_int_equal(entry.inode, expected->inode);
        assert_int_equal(entry.offset, expected->offset);
        assert_int_equal(entry.path.size, expected->path.size);
        assert_memory_equal(entry.path.data, expected->path.data, expected->path.size);
        assert_int_equal(entry.deleted, expected->deleted);
    }
}

static void test_parse_hostile(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        " ",
        "7f00",
        "7f00-",
        "-8f00 rw-p 00000000 00:00 0",
        "7f00-8f00",
        "7f00-8f00 rw-p",
        "7f00-8f00 rw-p 00000000",
        "7f00-8f00 rw-p 00000000 00:00",
        "7f00-8f00 rw-p 00000000 00:00 x",
        "7f00-8f00 rw-p 00000000 00:00 18446744073709551616",
        "7f00-8f00 rw-p 00000000 0000 0",
        "7f00-8f00 rw-p 00000000 00: 0",
        "7f00-8f00 rw-p 00000000 100000000:00 0",
        "7f00-8f00 rw-p -1 00:00 0",
        "7f00-8f00 rwxyp 00000000 00:00 0",
        "7f00-8f00 wr-p 00000000 00:00 0",
        "7f00-8f00 rw- 00000000 00:00 0",
        "8f00-7f00 rw-p 00000000 00:00 0",
        "7f00-7f00 rw-p 00000000 00:00 0",
        "7f00-10000000000000000 rw-p 00000000 00:00 0",
        "Rss:                   8 kB",
        "VmFlags: rd wr",
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        MapEntry entry = {.inode = 5};
        assert_int_equal(maps_parse_line(text_of(cases[i]), &entry), -EBADMSG);
        assert_int_equal(entry.inode, 5);
    }
}

/* Prints the entries as lines, so that two visits can be compared as strings. */
static int entry_print(const MapEntry *entry, void *context)
{
    Buffer *out = context;
    return buffer_printf(out, "%llx-%llx %d %d %u:%u %llu %llx %d <%.*s>\n", (unsigned long long)entry->start,
                         (unsigned long long)entry->end, entry->shared, entry->executable,
                         entry->device.major, entry->device.minor, (unsigned long long)entry->inode,
                         (unsigned long long)entry->offset, entry->deleted, (int)entry->path.size,
                         entry->path.data);
}

static void visit_all(const Root *root, int pid, MapsWhich which, Buffer *out)
{
    _cleanup_buffer_ Buffer scratch = {0};
    buffer_clear(out);
    assert_int_equal(maps_visit(root, pid, which, &scratch, entry_print, out), 0);
}

static void file_map(int fd, int protection)
{
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 8192), 0);
    /* Not from the start of the file, so that the offset is checked too. */
    assert_ptr_not_equal(mmap(NULL, 4096, protection, MAP_SHARED, fd, 4096), MAP_FAILED);
    close(fd);
}

/* Maps a file whose path is longer than PATH_MAX, so that the ioctl cannot name it. Its directory is removed,
 * but the mapping stays. */
static void deep_map(int directory)
{
    char name[201];
    memset(name, 'd', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    int fds[25];
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        int parent = i == 0 ? directory : fds[i - 1];
        assert_int_equal(mkdirat(parent, name, 0700), 0);
        fds[i] = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fds[i] >= 0);
    }
    int last = fds[ARRAY_SIZE(fds) - 1];
    file_map(openat(last, "deep", O_RDWR | O_CREAT | O_CLOEXEC, 0600), PROT_READ);
    unlinkat(last, "deep", 0);
    for (size_t i = ARRAY_SIZE(fds); i-- > 0;) {
        unlinkat(i == 0 ? directory : fds[i - 1], name, AT_REMOVEDIR);
        close(fds[i]);
    }
}

static void test_ioctl_and_text_agree(void **state)
{
    (void)state;
    /* every second file is unlinked */
    static const char *const names[] = {"plain",       "gone",        "two words ",     "no words ",
                                        "new\nline\n", "old\nline\n", "kept (deleted)", "twice (deleted)",
                                        "back\\slash", "octal\\012",  "\xff\xfe"};
    TempRoot temp = temp_root_make();
    int directory = open(temp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(directory >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        file_map(openat(directory, names[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600), PROT_READ | PROT_WRITE);
        if (i % 2 == 1)
            unlinkat(directory, names[i], 0);
    }
    file_map(memfd_create("mem fd\n", MFD_CLOEXEC), PROT_READ | PROT_EXEC);
    assert_ptr_not_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    int shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    if (shm >= 0) {
        (void)shmat(shm, NULL, 0);
        shmctl(shm, IPC_RMID, NULL);
    }

    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    Root text_only = root; /* borrows the descriptor */
    text_only.live = false;
    _cleanup_buffer_ Buffer live = {0};
    _cleanup_buffer_ Buffer text = {0};
    for (int deep = 0; deep < 2; deep++) {
        if (deep) {
            deep_map(directory);
            file_map(memfd_create("below", MFD_CLOEXEC), PROT_READ);
        }
        visit_all(&root, 0, MAPS_SHARED_FILES, &live);
        visit_all(&text_only, 0, MAPS_SHARED_FILES, &text);
        assert_string_equal(buffer_text(&live), buffer_text(&text));
        visit_all(&root, getpid(), MAPS_EXECUTABLE_FILES, &live);
        visit_all(&text_only, getpid(), MAPS_EXECUTABLE_FILES, &text);
        assert_string_equal(buffer_text(&live), buffer_text(&text));
        assert_non_null(strstr(buffer_text(&live), "test-maps>"));
        assert_non_null(strstr(buffer_text(&live), "/memfd:mem fd\\012>"));
    }

    visit_all(&root, 0, MAPS_SHARED_FILES, &live);
    static const char *const expected[] = {
        "/plain>\n",
        "/gone>\n",
        "/two words >\n",
        "/no words >\n",
        "/new\\012line\\012>\n",
        "/old\\012line\\012>\n",
        "/kept>\n", /* the text is ambiguous here, so it is only a hint */
        "/twice (deleted)>\n",
        "/back\\slash>\n",
        "/octal\\012>\n",
        "/\xff\xfe>\n",
        "</dev/zero>\n",
        "</memfd:mem fd\\012>\n",
        "</memfd:below>\n",
        "/deep>\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        assert_non_null(strstr(buffer_text(&live), expected[i]));
    if (shm >= 0)
        assert_non_null(strstr(buffer_text(&live), "</SYSV00000000>\n"));
    close(directory);
    temp_root_free(&temp);
}

static int entry_stop(const MapEntry *entry, void *context)
{
    (void)entry;
    return ++*(int *)context == 2 ? 77 : 0;
}

static void test_visitor_stops(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    _cleanup_buffer_ Buffer scratch = {0};
    for (int live = 0; live < 2; live++) {
        int calls = 0;
        root.live = live;
        assert_int_equal(maps_visit(&root, 0, MAPS_EXECUTABLE_FILES, &scratch, entry_stop, &calls), 77);
        assert_int_equal(calls, 2);
    }
}

static void test_captured(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/5/maps",
                    "1000-2000 rw-s 00000000 00:19 1 /a b\n"
                    "garbage\n"
                    "\n"
                    "2000-3000 rw-p 00000000 00:19 2 /private\n"
                    "3000-4000 rw-s 00000000 00:00 0 \n"
                    "4000-5000 r-xs 00000000 00:19 3 /code\n"
                    "5000-6000 rw-s 00000000 00:19 4 /torch_12");
    temp_root_write(&temp, "proc/6/maps", "");
    temp_root_link(&temp, "5", "proc/self");
    const Root *root = temp_root_open(&temp);
    _cleanup_buffer_ Buffer out = {0};
    for (int pid = 0; pid <= 5; pid += 5) {
        visit_all(root, pid, MAPS_SHARED_FILES, &out);
        assert_string_equal(buffer_text(&out),
                            "1000-2000 1 0 0:25 1 0 0 </a b>\n4000-5000 1 1 0:25 3 0 0 </code>\n");
        visit_all(root, pid, MAPS_EXECUTABLE_FILES, &out);
        assert_string_equal(buffer_text(&out), "4000-5000 1 1 0:25 3 0 0 </code>\n");
    }
    visit_all(root, 6, MAPS_SHARED_FILES, &out);
    assert_string_equal(buffer_text(&out), "");
    assert_int_equal(maps_visit(root, 7, MAPS_SHARED_FILES, &out, entry_stop, NULL), -ENOENT);
    temp_root_free(&temp);
}

typedef struct Walk {
    uint64_t next;
    int count;
} Walk;

static int entry_check(const MapEntry *entry, void *context)
{
    Walk *walk = context;
    assert_int_equal(entry->start, walk->next);
    assert_int_equal(entry->inode, walk->count + 1);
    assert_true(text_equal(entry->path, "/dev/shm/torch_1234_567890_1"));
    walk->next = entry->end;
    walk->count++;
    return 0;
}

/* Much more text than one read returns: no entry may be lost between two reads. */
static void test_long_text(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    _cleanup_buffer_ Buffer text = {0};
    for (unsigned i = 0; i < LINES; i++)
        assert_int_equal(
            buffer_printf(&text, "%x000-%x000 rw-s 00000000 00:19 %u        /dev/shm/torch_1234_567890_1\n",
                          i, i + 1, i + 1),
            0);
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/5/maps", buffer_text(&text));
    _cleanup_buffer_ Buffer scratch = {0};
    Walk walk = {0};
    assert_int_equal(maps_visit(temp_root_open(&temp), 5, MAPS_SHARED_FILES, &scratch, entry_check, &walk),
                     0);
    assert_int_equal(walk.count, LINES);
    temp_root_free(&temp);
}

static void test_find(void **state)
{
    (void)state;
    int fd = memfd_create("find\nme", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 3 * 4096), 0);
    char *at = mmap(NULL, 2 * 4096, PROT_READ, MAP_SHARED, fd, 4096);
    char *anonymous = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    assert_ptr_not_equal(anonymous, MAP_FAILED);
    munmap(nothing, 4096);
    close(fd);
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    _cleanup_buffer_ Buffer scratch = {0};
    for (int live = 0; live < 2; live++) {
        MapEntry entry;
        root.live = live;
        for (size_t i = 0; i < 2 * 4096; i += 4095) {
            assert_int_equal(maps_find(&root, getpid(), (uintptr_t)at + i, &scratch, &entry), 1);
            assert_int_equal(entry.start, (uintptr_t)at);
            assert_int_equal(entry.offset, 4096);
            assert_true(text_equal(entry.path, "/memfd:find\\012me"));
            assert_true(entry.deleted && entry.shared);
        }
        assert_int_equal(maps_find(&root, 0, (uintptr_t)anonymous, &scratch, &entry), 1);
        assert_int_equal(entry.inode, 0);
        assert_int_equal(maps_find(&root, 0, (uintptr_t)nothing, &scratch, &entry), 0);
        assert_int_equal(maps_find(&root, 0, 0, &scratch, &entry), 0);
        assert_int_equal(maps_find(&root, 0, UINT64_MAX, &scratch, &entry), 0);
        assert_int_equal(maps_find(&root, 0, (uintptr_t)test_find, &scratch, &entry), 1);
        assert_true(text_ends(entry.path, "test-maps"));
        assert_true(entry.executable);
        assert_int_equal(maps_find(&root, INT32_MAX, 0, &scratch, &entry), -ENOENT);
    }
    munmap(at, 2 * 4096);
}

/* The ioctl and the text must agree, except for [vsyscall]: only the text has it, and it is not a mapping of
 * the process. */
static void test_count_agrees(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    uint64_t counts[2] = {0};
    for (int live = 0; live < 2; live++) {
        root.live = live;
        assert_int_equal(maps_count(&root, pid, &counts[live]), 0);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_in_range(counts[0], 5, 100000);
    assert_in_range(counts[0] - counts[1], 0, 1);
}

static int entry_keep(const MapEntry *entry, void *context)
{
    if (!text_equal(entry->path, "/memfd:stat me"))
        return 0;
    *(MapEntry *)context = *entry;
    return 1;
}

static void test_stat(void **state)
{
    (void)state;
    int fd = memfd_create("stat me", MFD_CLOEXEC);
    file_map(fd, PROT_READ);
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    _cleanup_buffer_ Buffer scratch = {0};
    MapEntry entry = {0};
    assert_int_equal(maps_visit(&root, getpid(), MAPS_SHARED_FILES, &scratch, entry_keep, &entry), 1);
    FileStat stat;
    int r = maps_stat(&root, getpid(), &entry, &stat);
    if (r == -EPERM || r == -EACCES)
        skip();
    assert_int_equal(r, 0);
    assert_int_equal(stat.inode, entry.inode);
    assert_int_equal(stat.size_bytes, 8192);
    assert_int_equal(stat.nlink, 0);
    entry.end += 4096;
    assert_int_equal(maps_stat(&root, getpid(), &entry, &stat), -ENOENT);

    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/5/maps", "");
    temp_root_write(
        &temp, ".capture/stat",
        "proc/5/map_files/7f0000001000-7f0000002000 0:25 12 100600 1 1000 4096 8 1700000000 1700000001\n");
    entry = (MapEntry){.start = 0x7f0000001000, .end = 0x7f0000002000};
    assert_int_equal(maps_stat(temp_root_open(&temp), 5, &entry, &stat), 0);
    assert_int_equal(stat.inode, 12);
    temp_root_free(&temp);
}

static void test_gone(void **state)
{
    (void)state;
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    int child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    _cleanup_buffer_ Buffer out = {0};
    visit_all(&root, child, MAPS_SHARED_FILES, &out); /* a zombie maps nothing */
    assert_string_equal(buffer_text(&out), "");
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(maps_visit(&root, child, MAPS_SHARED_FILES, &out, entry_stop, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_hostile),
        cmocka_unit_test(test_ioctl_and_text_agree),
        cmocka_unit_test(test_visitor_stops),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_count_agrees),
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
