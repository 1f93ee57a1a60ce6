/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "mapped-file.h"
#include "temp-root.h"

enum { NOBODY = 65534 };

typedef struct Case {
    const char *name;
    bool keep_name;       /* the file still exists under its name */
    bool keep_descriptor; /* the process has it open */
    bool replaced;        /* the name belongs to another file now */
    bool unprivileged_finds;
} Case;

static int file_check(const Root *root, char *at, uint64_t expected_bytes, bool expected)
{
    _cleanup_buffer_ Buffer scratch = {0};
    MapEntry entry;
    FileStat stat = {.size_bytes = 0};
    if (maps_find(root, getpid(), (uintptr_t)at + 5000, &scratch, &entry) != 1)
        return 10;
    int r = mapped_file_stat(root, getpid(), &entry, &stat);
    if (!expected)
        return r == -ENODATA ? 0 : 11;
    return r == 0 && stat.size_bytes == expected_bytes ? 0 : 12;
}

static void test_ways(void **state)
{
    (void)state;
    static const Case cases[] = {
        {"by its name", true, false, false, true},
        {"by a descriptor", false, true, false, true},
        {"by a descriptor, not by a name that means another", false, true, true, true},
        {"not by a name that means another", false, false, true, false},
        {"no way", false, false, false, false},
    };
    _cleanup_root_ Root root = ROOT_NONE;
    assert_int_equal(root_open(NULL, &root), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const Case *c = &cases[i];
        TempRoot temp = temp_root_make();
        char path[128];
        snprintf(path, sizeof path, "%s/a file", temp.path);
        chmod(temp.path, 0755);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(ftruncate(fd, 8192), 0);
        char *at = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(at, MAP_FAILED);
        assert_int_equal(ftruncate(fd, 77), 0);
        if (!c->keep_name)
            unlink(path);
        if (c->replaced)
            close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644));
        if (!c->keep_descriptor)
            close(fd);

        assert_int_equal(file_check(&root, at, 77, geteuid() == 0 || c->unprivileged_finds), 0);
        if (geteuid() == 0) { /* again as an ordinary user, without map_files */
            int pid = fork();
            if (pid == 0) {
                int r = setgid(NOBODY) || setuid(NOBODY);
                prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
                _exit(r ? 13 : file_check(&root, at, 77, c->unprivileged_finds));
            }
            int status = 0;
            waitpid(pid, &status, 0);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail_msg("%s: %x", c->name, status);
        }
        if (c->keep_descriptor)
            close(fd);
        munmap(at, 8192);
        temp_root_free(&temp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
