/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the newest complete checkpoint. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "checkpoint.h"

/* An archive with one stored file "a" that contains "x". */
#define ZIP_FILE                                                                                             \
    "PK\3\4\24\0\0\0\0\0\0\0\0\0\203\26\334\214\1\0\0\0\1\0\0\0\1\0\0\0a"                                    \
    "x"
#define ZIP_DIRECTORY                                                                                        \
    "PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0\203\26\334\214\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"    \
    "a"
#define ZIP_END "PK\5\6\0\0\0\0\1\0\1\0\57\0\0\0\40\0\0\0\0\0"

static const char zip[] = ZIP_FILE ZIP_DIRECTORY ZIP_END;
enum { ZIP_BYTES = sizeof zip - 1, ZIP_DIRECTORY_PLACE = sizeof(ZIP_FILE) - 1, ZIP_END_BYTES = 22 };

/* --- Formats ------------------------------------------------------------------------------------------ */

static void test_zip(void **state)
{
    (void)state;
    assert_int_equal(ZIP_DIRECTORY_PLACE, 32);
    assert_int_equal(ZIP_BYTES, 32 + 47 + 22);
    uint64_t directory = 0;
    assert_int_equal(zip_end_parse((Text){zip, ZIP_BYTES}, ZIP_BYTES, &directory), 0);
    assert_int_equal(directory, ZIP_DIRECTORY_PLACE);
    for (size_t n = 0; n < ZIP_BYTES; n++) /* truncated anywhere */
        assert_int_equal(zip_end_parse((Text){zip, n}, n, &directory), -EBADMSG);

    /* Only the tail of a file whose directory begins earlier. */
    directory = 0;
    assert_int_equal(zip_end_parse((Text){zip + ZIP_BYTES - 30, 30}, ZIP_BYTES, &directory), 0);
    assert_int_equal(directory, ZIP_DIRECTORY_PLACE);

    char copy[ZIP_BYTES + 8];
    memcpy(copy, zip, ZIP_BYTES);
    memcpy(copy + ZIP_BYTES, "PK\5\6zzzz", 8); /* a comment that looks like an end record */
    assert_int_equal(zip_end_parse((Text){copy, sizeof copy}, sizeof copy, &directory), -EBADMSG);
    copy[ZIP_BYTES - 2] = 8;
    assert_int_equal(zip_end_parse((Text){copy, sizeof copy}, sizeof copy, &directory), 0);
    copy[ZIP_BYTES - 2] = 0;
    copy[ZIP_BYTES - 6] = 0x7f; /* the directory would be located after the end record */
    assert_int_equal(zip_end_parse((Text){copy, ZIP_BYTES}, ZIP_BYTES, &directory), -EBADMSG);
}

/* In archives over 4 GiB: the zip64 end record, its locator, and the old end record filled with 0xff. */
static void test_zip64(void **state)
{
    (void)state;
    char tail[56 + 20 + 22] = "PK\6\6";
    tail[40] = 100;                     /* size of the directory */
    memcpy(tail + 48, "\0\0\0\0\2", 5); /* its offset: 8 GiB */
    memcpy(tail + 56, "PK\6\7", 4);
    memcpy(tail + 56 + 8, "\x64\0\0\0\2", 5); /* the record's offset: right after the directory */
    memcpy(tail + 76, "PK\5\6", 4);
    memset(tail + 76 + 8, 0xff, 12);
    uint64_t file_bytes = (UINT64_C(8) << 30) + 100 + sizeof tail;
    uint64_t directory = 0;
    Text whole = {tail, sizeof tail};
    assert_int_equal(zip_end_parse(whole, file_bytes, &directory), 0);
    assert_int_equal(directory, UINT64_C(8) << 30);
    assert_int_equal(zip_end_parse(whole, file_bytes - 1, &directory), -EBADMSG);
    assert_int_equal(zip_end_parse(whole, file_bytes + 1, &directory), -EBADMSG);
    assert_int_equal(zip_end_parse((Text){tail + 1, sizeof tail - 1}, file_bytes, &directory), -EBADMSG);
    assert_int_equal(zip_end_parse((Text){tail + 76, 22}, file_bytes, &directory), -EBADMSG);
    memset(tail + 56 + 8, 0xff, 8);
    assert_int_equal(zip_end_parse(whole, file_bytes, &directory), -EBADMSG);
    memcpy(tail + 56 + 8, "\x64\0\0\0\2\0\0\0", 8);
    memset(tail + 40, 0xff, 8);
    assert_int_equal(zip_end_parse(whole, file_bytes, &directory), -EBADMSG);
}

static void test_safetensors(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int r;
        uint64_t bytes;
    } cases[] = {
        {"{}", 0, 0},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ", 0, 8},
        {"{\"a\":{\"data_offsets\" : [ 8 , 24 ]},\"b\":{\"data_offsets\":[0,8]}}", 0, 24},
        {"{\"\\\"data_offsets\\\"\":{\"data_offsets\":[0,4]}}", 0, 4},
        {"", -EBADMSG, 0},
        {"{", -EBADMSG, 0},
        {"\0\0\0", -EBADMSG, 0},
        {"{\"a\":{\"data_offsets\":[0,", -EBADMSG, 0},
        {"{\"a\":{\"data_offsets\":[0,-8]}}", -EBADMSG, 0},
        {"{\"a\":{\"data_offsets\":[8,0]}}", -EBADMSG, 0},
        {"{\"a\":{\"data_offsets\":[0]}}", -EBADMSG, 0},
        {"{\"a\":{\"data_offsets\":[0,99999999999999999999]}}", -EBADMSG, 0},
        {"{\"data_offsets\"}", -EBADMSG, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t bytes = 77;
        assert_int_equal(safetensors_parse(text_of(cases[i].header), &bytes), cases[i].r);
        assert_int_equal(bytes, cases[i].r < 0 ? 77 : cases[i].bytes);
    }
}

/* --- Files -------------------------------------------------------------------------------------------- */

typedef struct Place {
    char path[64];
} Place;

static int place_set_up(void **state)
{
    static Place place;
    snprintf(place.path, sizeof place.path, "/tmp/shmguard-checkpoint-XXXXXX");
    if (!mkdtemp(place.path) || chdir(place.path) < 0)
        return -1;
    *state = &place;
    return 0;
}

static int entry_remove(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int place_tear_down(void **state)
{
    const Place *place = *state;
    return chdir("/") < 0 ? -1 : nftw(place->path, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* A file that was modified `age` seconds ago. */
static void file_make(const char *path, const void *bytes, size_t n, int age)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= age;
    times[1] = times[0];
    assert_int_equal(futimens(fd, times), 0);
    fd_close(fd);
}

static void expect(const char *glob, const char *path, size_t skipped, CheckpointState first)
{
    _cleanup_arena_ Arena arena = {0};
    Checkpoints found;
    assert_int_equal(checkpoints_find(glob, &arena, &found), 0);
    const Checkpoint *whole = checkpoints_whole(&found);
    assert_int_equal(!whole, !path);
    if (whole)
        assert_string_equal(whole->path, path);
    assert_int_equal(found.n, skipped + (path != NULL));
    if (skipped > 0)
        assert_int_equal(found.items[0].state, first);
}

static void test_newest(void **state)
{
    (void)state;
    expect("*.pt", NULL, 0, CHECKPOINT_WHOLE);
    expect("nowhere/*.pt", NULL, 0, CHECKPOINT_WHOLE);
    expect("[", NULL, 0, CHECKPOINT_WHOLE);
    file_make("a-1.pt", "x", 1, 300);
    file_make("a-3.pt", "x", 1, 100);
    file_make("a-2.pt", "x", 1, 200);
    expect("*.pt", "a-3.pt", 0, CHECKPOINT_WHOLE);
    expect("a-{1,2}.pt", "a-2.pt", 0, CHECKPOINT_WHOLE);
    expect("./a-1.pt", "./a-1.pt", 0, CHECKPOINT_WHOLE);

    /* With equal times, names are compared as people count: 10 comes after 9. */
    file_make("s-9", "x", 1, 50);
    struct stat stat;
    assert_int_equal(fstatat(AT_FDCWD, "s-9", &stat, 0), 0);
    file_make("s-10", "x", 1, 50);
    assert_int_equal(utimensat(AT_FDCWD, "s-10", (struct timespec[]){stat.st_mtim, stat.st_mtim}, 0), 0);
    expect("s-*", "s-10", 0, CHECKPOINT_WHOLE);

    assert_int_equal(symlink("a-2.pt", "last.pt"), 0);
    expect("last.pt", "last.pt", 0, CHECKPOINT_WHOLE);
    assert_int_equal(symlink("nowhere", "lost.pt"), 0);
    expect("l*.pt", "last.pt", 0, CHECKPOINT_WHOLE);
}

static void test_not_whole(void **state)
{
    (void)state;
    file_make("good.pt", zip, ZIP_BYTES, 100);
    expect("*.pt", "good.pt", 0, CHECKPOINT_WHOLE);
    for (size_t n = 2; n < ZIP_BYTES; n++) {
        file_make("new.pt", zip, n, 10);
        expect("*.pt", "good.pt", 1, CHECKPOINT_CUT);
    }
    char zeros[ZIP_BYTES] = "PK\3\4"; /* after a power failure: the right size, but no contents */
    file_make("new.pt", zeros, sizeof zeros, 10);
    expect("*.pt", "good.pt", 1, CHECKPOINT_CUT);
    char hollow[ZIP_BYTES];
    memcpy(hollow, zip, ZIP_BYTES);
    memset(hollow + ZIP_DIRECTORY_PLACE, 0, 8);
    file_make("new.pt", hollow, sizeof hollow, 10);
    expect("*.pt", "good.pt", 1, CHECKPOINT_CUT);
    file_make("new.pt", "", 0, 10);
    expect("*.pt", "good.pt", 1, CHECKPOINT_EMPTY);
    file_make("new.pt", "P", 1, 10); /* not an archive, so it cannot be checked */
    expect("*.pt", "new.pt", 0, CHECKPOINT_WHOLE);

    static const char *const temporary[] = {"x.pt.tmp", "x.pt.part", "x.pt~", "tmp-x"};
    for (size_t i = 0; i < ARRAY_SIZE(temporary); i++) {
        file_make(temporary[i], "x", 1, 1);
        expect("{good.pt,*tmp*,*.part,*~}", "good.pt", i + 1, CHECKPOINT_TEMPORARY);
    }
    assert_int_equal(mkfifo("pipe", 0600), 0);
    expect("pipe", NULL, 0, CHECKPOINT_WHOLE);
}

static void test_safetensors_file(void **state)
{
    (void)state;
    static const char file[] =
        "\61\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}        abcd";
    size_t n = sizeof file - 1;
    assert_int_equal(n, 8 + 49 + 4);
    file_make("m.safetensors", file, n, 10);
    expect("m.safetensors", "m.safetensors", 0, CHECKPOINT_WHOLE);
    for (size_t cut = 1; cut < n; cut++) {
        file_make("m.safetensors", file, cut, 10);
        expect("m.safetensors", NULL, 1, CHECKPOINT_CUT);
    }
    file_make("m.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, 10);
    expect("m.safetensors", NULL, 1, CHECKPOINT_CUT);
}

static void test_written(void **state)
{
    (void)state;
    file_make("old.pt", "x", 1, 100);
    file_make("new.pt", "x", 1, 10);
    int fd = open("new.pt", O_WRONLY | O_CLOEXEC);
    expect("*.pt", "old.pt", 1, CHECKPOINT_WRITTEN);
    fd_close(fd);
    expect("*.pt", "new.pt", 0, CHECKPOINT_WHOLE);

    fd = open("new.pt", O_RDWR | O_CLOEXEC);
    void *mapping = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    fd_close(fd);
    expect("*.pt", "old.pt", 1, CHECKPOINT_WRITTEN);
    munmap(mapping, 1);

    fd = open("new.pt", O_RDONLY | O_CLOEXEC); /* readers do not matter */
    expect("*.pt", "new.pt", 0, CHECKPOINT_WHOLE);
    fd_close(fd);
}

/* For another user's file the kernel does not say who writes it, so it must stay unchanged for a while. */
static void test_of_others(void **state)
{
    const Place *place = *state;
    enum { NOBODY = 65534 };
    if (geteuid() != 0) {
        print_message("needs root to create files of two users\n");
        skip();
    }
    assert_int_equal(chmod(place->path, 0755), 0);
    file_make("old.pt", "x", 1, 100);
    file_make("new.pt", "x", 1, 10);
    assert_int_equal(chmod("old.pt", 0644) | chmod("new.pt", 0644), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    expect("*.pt", "new.pt", 0, CHECKPOINT_WHOLE);
    assert_int_equal(seteuid(0), 0);

    pid_t writer = fork();
    if (writer == 0) {
        int fd = open("new.pt", O_WRONLY | O_APPEND | O_CLOEXEC);
        while (write(fd, "x", 1) == 1)
            usleep(20000);
        _exit(1);
    }
    usleep(100000);
    assert_int_equal(seteuid(NOBODY), 0);
    expect("*.pt", "old.pt", 1, CHECKPOINT_WRITTEN);
    assert_int_equal(seteuid(0), 0);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);

    file_make("new.pt", "x", 1, -3600); /* written by a machine whose clock is ahead */
    assert_int_equal(seteuid(NOBODY), 0);
    expect("*.pt", "new.pt", 0, CHECKPOINT_WHOLE);
    assert_int_equal(seteuid(0), 0);
}

static void test_directories(void **state)
{
    (void)state;
    assert_int_equal(mkdir("step-1", 0700), 0);
    expect("step-*", NULL, 1, CHECKPOINT_EMPTY);
    file_make("step-1/model.bin", zip, ZIP_BYTES, 100);
    file_make("step-1/done", "", 0, 100);
    expect("step-*", "step-1", 0, CHECKPOINT_WHOLE);
    expect("step-*/", "step-1/", 0, CHECKPOINT_WHOLE);

    /* A directory is as new as its newest file, not as its own timestamp. */
    assert_int_equal(mkdir("step-2", 0700) | mkdir("step-2/deep", 0700), 0);
    file_make("step-2/deep/model.bin", zip, ZIP_BYTES, 200);
    expect("step-*", "step-1", 0, CHECKPOINT_WHOLE);
    file_make("step-2/deep/model.bin", zip, ZIP_BYTES, 50);
    expect("step-*", "step-2", 0, CHECKPOINT_WHOLE);
    file_make("step-2/deep/model.bin", zip, ZIP_BYTES - 1, 50);
    expect("step-*", "step-1", 1, CHECKPOINT_CUT);
    file_make("step-2/deep/model.bin", zip, ZIP_BYTES, 50);
    int fd = open("step-2/deep/model.bin", O_WRONLY | O_CLOEXEC);
    expect("step-*", "step-1", 1, CHECKPOINT_WRITTEN);
    fd_close(fd);
    file_make("step-2/optimizer.pt.tmp", "x", 1, 50);
    expect("step-*", "step-1", 1, CHECKPOINT_TEMPORARY);
    assert_int_equal(unlink("step-2/optimizer.pt.tmp"), 0);
    assert_int_equal(symlink("..", "step-2/circle"), 0);
    expect("step-*", "step-2", 0, CHECKPOINT_WHOLE);

    file_make("step-2/__0_0.distcp", "x", 1, 50);
    expect("step-*", "step-1", 1, CHECKPOINT_CUT);
    file_make("step-2/.metadata", "x", 1, 50);
    expect("step-*", "step-2", 0, CHECKPOINT_WHOLE);

    assert_int_equal(mkdir("tmp-checkpoint-3", 0700), 0);
    file_make("tmp-checkpoint-3/x", "x", 1, 1);
    expect("{step-*,tmp-*}", "step-2", 1, CHECKPOINT_TEMPORARY);
}

#define IN_A_PLACE(test) cmocka_unit_test_setup_teardown(test, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zip), cmocka_unit_test(test_zip64), cmocka_unit_test(test_safetensors),
        IN_A_PLACE(test_newest),    IN_A_PLACE(test_not_whole),   IN_A_PLACE(test_safetensors_file),
        IN_A_PLACE(test_written),   IN_A_PLACE(test_of_others),   IN_A_PLACE(test_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
