/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "report-file.h"

static int folder_set_up(void **state)
{
    static char path[64];
    strcpy(path, "/tmp/shmguard-test-XXXXXX");
    *state = mkdtemp(path);
    return *state && chdir(path) == 0 ? 0 : -1;
}

static int folder_tear_down(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1; /* NOLINT: a path of our own making */
}

static size_t files_here(void)
{
    size_t n = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; (entry = readdir(directory));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return n;
}

static void content_is(const char *path, const char *text)
{
    char content[64] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, content, sizeof content - 1) >= 0);
    close(fd);
    assert_string_equal(content, text);
}

static int fill_text(FILE *out, const void *context)
{
    return fputs(context, out) < 0 ? -EIO : 0;
}

static int fill_fails(FILE *out, const void *context)
{
    (void)context;
    fputs("half", out);
    return -ENOMEM;
}

static void test_write(void **state)
{
    (void)state;
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    assert_int_equal(report_file_open("report.json", &file), 0);
    assert_int_equal(files_here(), 0); /* nothing yet */
    assert_int_equal(report_file_write(&file, fill_text, "one"), 0);
    content_is("report.json", "one");
    assert_int_equal(report_file_write(&file, fill_fails, NULL), -ENOMEM);
    content_is("report.json", "one");
    assert_int_equal(report_file_write(&file, fill_text, "two"), 0);
    content_is("report.json", "two");
    assert_int_equal(files_here(), 1);
}

static void test_link(void **state)
{
    (void)state;
    assert_int_equal(mkdir("deep", 0700), 0);
    close(open("deep/real", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(symlink("deep/real", "link"), 0);
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    assert_int_equal(report_file_open("link", &file), 0);
    assert_int_equal(report_file_write(&file, fill_text, "x"), 0);
    content_is("deep/real", "x");
    struct stat st;
    assert_int_equal(lstat("link", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

/* What is no plain file is written to, never replaced. */
static void test_direct(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
    assert_int_equal(report_file_open("pipe", &file), -ENXIO); /* nobody reads, and we do not wait */
    int reader = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(report_file_open("pipe", &file), 0);
    assert_int_equal(report_file_write(&file, fill_text, "hello"), 0);
    char content[8] = {0};
    assert_int_equal(read(reader, content, sizeof content), 5);
    close(reader);
    report_file_close(&file);
    assert_int_equal(report_file_open("/dev/full", &file), 0);
    assert_int_equal(report_file_write(&file, fill_text, "hello"), -ENOSPC);
    struct stat st;
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void test_unusable(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int r;
    } cases[] = {
        {"", -EISDIR},          {".", -EISDIR},       {"/", -EISDIR},
        {"nowhere/x", -ENOENT}, {"file/x", -ENOTDIR}, {"new/", -EISDIR},
    };
    close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_report_file_ ReportFile file = REPORT_FILE_NONE;
        int r = report_file_open(cases[i].path, &file);
        if (r != cases[i].r)
            fail_msg("\"%s\": %d", cases[i].path, r);
    }
    assert_int_equal(files_here(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_set_up, folder_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_write), TEST(test_link), TEST(test_direct),
                                       TEST(test_unusable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
