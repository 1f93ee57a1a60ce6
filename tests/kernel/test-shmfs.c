/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <sys/mount.h>

#include "shmfs.h"
#include "temp-root.h"

#define MOUNT_LINE "25 24 0:25 / /dev/shm rw,nosuid - tmpfs shm "
#define FS_LINE    "dev/shm 1021994 4096 16384 4096 4000 1000 900\n"
#define STAT_LINE  "dev/shm 0:25 1 41777 2 0 60 0 1 1\n"

static ShmMount read_tree(const char *mountinfo, const char *statfs, const char *stat, const char *ids,
                          bool directory)
{
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_write(&temp, ".capture/statfs", statfs);
    temp_root_write(&temp, ".capture/stat", stat);
    temp_root_write(&temp, ".capture/ids", ids);
    if (directory)
        temp_root_write(&temp, "dev/shm/torch_1_2_3", "");
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    ShmMount shm;
    assert_int_equal(mounts_parse(text_of(mountinfo), &arena, &mounts), 0);
    shmfs_read(temp_root_open(&temp), &mounts, &shm);
    temp_root_free(&temp);
    return shm;
}

static void test_sizes(void **state)
{
    (void)state;
    ShmMount shm = read_tree(MOUNT_LINE "rw,size=65536k,nr_inodes=1000\n", FS_LINE, STAT_LINE, "1000", true);
    assert_int_equal(shm.state, SHM_OK);
    assert_true(device_equal(shm.device, (Device){0, 25}));
    assert_int_equal(shm.size_bytes, 64 << 20);
    assert_int_equal(shm.used_bytes, 48 << 20);
    assert_int_equal(shm.available_bytes, 4000 * 4096);
    assert_int_equal(shm.inodes, 1000);
    assert_int_equal(shm.inodes_free, 900);
    assert_true(shm.mounted);
    assert_false(shm.read_only);
    assert_false(shm.no_access);
    assert_false(shm.huge);
}

static void test_owners(void **state)
{
    (void)state;
#define ROOT_LINE                        "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define SHM_LINE(options, source, super) "25 20 0:25 / /dev/shm " options " - tmpfs " source " " super "\n"
#define PLAIN                            SHM_LINE("rw,relatime", "tmpfs", "rw")
#define TMP(path)                        "26 20 8:1 " path " /tmp rw,relatime - ext4 /dev/sda1 rw\n"
    static const struct {
        const char *what;
        const char *mounts;
        bool kubernetes;
        bool slurm;
        ShmOwner owner;
    } cases[] = {
        {"an emptyDir", ROOT_LINE PLAIN, true, false, SHM_OF_POD},
        {"an emptyDir with a size", ROOT_LINE SHM_LINE("rw,relatime", "tmpfs", "rw,size=65536k"), true, false,
         SHM_OF_POD},
        {"the runtime's own", ROOT_LINE SHM_LINE("rw,nosuid,nodev,noexec", "shm", "rw,size=65536k"), true,
         false, SHM_OWNER_UNKNOWN},
        {"that of the node", ROOT_LINE SHM_LINE("rw,nosuid,nodev", "tmpfs", "rw"), true, false,
         SHM_OWNER_UNKNOWN},
        {"no pod", ROOT_LINE PLAIN, false, false, SHM_OWNER_UNKNOWN},
        {"a job with its own", ROOT_LINE PLAIN TMP("/var/slurm/node7/4242/.4242/_tmp"), false, true,
         SHM_OF_JOB},
        {"a job of Slurm 22.05", ROOT_LINE PLAIN TMP("/var/slurm/node7/4242/.4242"), false, true, SHM_OF_JOB},
        {"a directory of one", ROOT_LINE PLAIN TMP("/var/slurm/4242/.4242/here"), false, true,
         SHM_OWNER_UNKNOWN},
        {"no job", ROOT_LINE PLAIN TMP("/var/slurm/4242/.4242/_tmp"), false, false, SHM_OWNER_UNKNOWN},
        {"a job without", ROOT_LINE PLAIN, false, true, SHM_OWNER_UNKNOWN},
        {"a bind mount of another kind", ROOT_LINE PLAIN TMP("/scratch/4242/_tmp"), false, true,
         SHM_OWNER_UNKNOWN},
        {"two different numbers", ROOT_LINE PLAIN TMP("/var/slurm/4242/.4243/_tmp"), false, true,
         SHM_OWNER_UNKNOWN},
        {"no number", ROOT_LINE PLAIN TMP("/var/a/.a/_tmp"), false, true, SHM_OWNER_UNKNOWN},
        {"no mount", ROOT_LINE, true, true, SHM_OWNER_UNKNOWN},
        {"a directory of the node", ROOT_LINE "25 20 8:1 /shm /dev/shm rw - ext4 /dev/sda1 rw\n", true, true,
         SHM_OWNER_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Mounts mounts;
        assert_int_equal(mounts_parse(text_of(cases[i].mounts), &arena, &mounts), 0);
        if (shm_owner_find(&mounts, cases[i].kubernetes, cases[i].slurm) != cases[i].owner)
            fail_msg("%s", cases[i].what);
    }
}

static void test_states(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *statfs;
        const char *stat;
        bool directory;
        ShmState state;
    } cases[] = {
        {"as it should be", FS_LINE, STAT_LINE, true, SHM_OK},
        {"stat is missing", FS_LINE, "", true, SHM_OK},
        {"a disk", "dev/shm ef53 4096 100 50 50 10 5\n", STAT_LINE, true, SHM_NOT_TMPFS},
        {"ramfs", "dev/shm 858458f6 4096 0 0 0 0 0\n", STAT_LINE, true, SHM_NOT_TMPFS},
        {"nothing there", "", "", false, SHM_ABSENT},
        {"a file", FS_LINE, "dev/shm 0:25 1 100644 1 0 60 0 1 1\n", true, SHM_ABSENT},
        {"there, but nothing is known of it", "", "", true, SHM_UNKNOWN},
        {"garbage", "dev/shm tmpfs lots\n", STAT_LINE, true, SHM_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ShmMount shm = read_tree(MOUNT_LINE "rw\n", cases[i].statfs, cases[i].stat, "0", cases[i].directory);
        if (shm.state != cases[i].state)
            fail_msg("%s: state %d instead of %d", cases[i].name, (int)shm.state, (int)cases[i].state);
    }
}

static void test_no_limit(void **state)
{
    (void)state;
    ShmMount shm =
        read_tree(MOUNT_LINE "rw,size=0k\n", "dev/shm 1021994 4096 0 0 0 0 0\n", STAT_LINE, "0", true);
    assert_int_equal(shm.state, SHM_OK);
    assert_int_equal(shm.size_bytes, 0);
    assert_true(shm.used_bytes == U64_UNKNOWN);
    assert_true(shm.available_bytes == U64_UNKNOWN);
    assert_int_equal(shm.inodes, 0);
}

/* More free space than there is in total: only a damaged capture says so. */
static void test_nonsense_does_not_wrap(void **state)
{
    (void)state;
    ShmMount shm = read_tree("", "dev/shm 1021994 4096 10 20 20 5 9\n", STAT_LINE, "0", true);
    assert_int_equal(shm.used_bytes, 0);
}

static void test_mount_options(void **state)
{
    (void)state;
    static const struct {
        const char *mountinfo;
        bool mounted;
        bool read_only;
        bool huge;
    } cases[] = {
        {"", false, false, false},
        {"24 1 0:6 / /dev rw - devtmpfs d rw\n", false, false, false},
        {MOUNT_LINE "rw,size=64k\n", true, false, false},
        {MOUNT_LINE "ro,size=64k\n", true, true, false},
        {"25 24 0:25 / /dev/shm ro - tmpfs shm rw\n", true, true, false},
        {MOUNT_LINE "rw,huge=always\n", true, false, true},
        {MOUNT_LINE "rw,huge=force\n", true, false, true},
        {MOUNT_LINE "rw,huge=within_size\n", true, false, false},
        {MOUNT_LINE "rw,huge=advise\n", true, false, false},
        {MOUNT_LINE "rw,huge=never\n", true, false, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ShmMount shm = read_tree(cases[i].mountinfo, FS_LINE, STAT_LINE, "0", true);
        assert_int_equal(shm.mounted, cases[i].mounted);
        assert_int_equal(shm.read_only, cases[i].read_only);
        assert_int_equal(shm.huge, cases[i].huge);
    }
}

static void test_access(void **state)
{
    (void)state;
    static const struct {
        const char *stat;
        const char *ids;
        bool no_access;
    } cases[] = {
        {STAT_LINE, "1000", false},
        {"dev/shm 0:25 1 40755 2 0 60 0 1 1\n", "1000", true},
        {"dev/shm 0:25 1 40755 2 0 60 0 1 1\n", "0", false},
        {"dev/shm 0:25 1 40755 2 1000 60 0 1 1\n", "1000", false},
        {"dev/shm 0:25 1 40577 2 1000 60 0 1 1\n", "1000", true},
        {"dev/shm 0:25 1 40776 2 0 60 0 1 1\n", "1000", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(read_tree(MOUNT_LINE "rw\n", FS_LINE, cases[i].stat, cases[i].ids, true).no_access,
                         cases[i].no_access);
}

/* /dev/shm is a link to /run/shm. In a captured tree it must not lead to this machine's /run/shm. */
static void test_link(void **state)
{
    (void)state;
    static const char *const targets[] = {"/run/shm", "../run/shm"};
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        TempRoot temp = temp_root_make();
        temp_root_write(&temp, "proc/meminfo", "");
        temp_root_link(&temp, targets[i], "dev/shm");
        temp_root_write(&temp, ".capture/statfs", "run/shm 1021994 4096 16384 4096 4000 1000 900\n");
        _cleanup_arena_ Arena arena = {0};
        Mounts mounts;
        ShmMount shm;
        assert_int_equal(mounts_parse(TEXT("9 1 0:77 / /run/shm rw - tmpfs t rw\n"), &arena, &mounts), 0);
        shmfs_read(temp_root_open(&temp), &mounts, &shm);
        assert_int_equal(shm.state, SHM_OK);
        assert_true(shm.mounted);
        assert_true(device_equal(shm.device, (Device){0, 77}));
        temp_root_free(&temp);
    }
}

typedef struct Seen {
    Buffer names; /* each followed by a bar */
    size_t n;
    size_t stop_at;
    uint64_t size_bytes;
} Seen;

static int see(const char *name, const FileStat *stat, void *context)
{
    Seen *seen = context;
    assert_int_equal(buffer_printf(&seen->names, "%s|", name), 0);
    seen->size_bytes += stat->size_bytes;
    return ++seen->n == seen->stop_at ? 42 : 0;
}

static void assert_saw(const Seen *seen, const char *name)
{
    char needle[512];
    snprintf(needle, sizeof needle, "%s|", name);
    if (!strstr(buffer_text(&seen->names), needle))
        fail_msg("%s is not among %s", name, buffer_text(&seen->names));
}

static void test_visit_captured(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    temp_root_write(&temp, "dev/shm/torch_1", "");
    temp_root_write(&temp, "dev/shm/a b\nc)", "");
    temp_root_write(&temp, "dev/shm/gone", ""); /* deleted between listing and stat */
    temp_root_write(&temp, "dev/shm/elsewhere", "");
    temp_root_write(&temp, "dev/shm/d/inner", "");
    temp_root_link(&temp, "/etc", "dev/shm/link");
    temp_root_write(&temp, ".capture/stat",
                    STAT_LINE "dev/shm/torch_1 0:25 2 100600 1 0 100 8 1 1\n"
                              "dev/shm/a\\040b\\012c) 0:25 3 100600 1 0 20 8 1 1\n"
                              "dev/shm/elsewhere 0:26 4 100600 1 0 3 8 1 1\n"
                              "dev/shm/d 0:25 5 40700 2 0 0 0 1 1\n"
                              "dev/shm/d/inner 0:25 6 100600 1 0 1000 8 1 1\n"
                              "dev/shm/link 0:25 7 120777 1 0 4 0 1 1\n");
    const Root *root = temp_root_open(&temp);
    Seen seen = {0};
    assert_int_equal(shmfs_visit(root, see, &seen), 0);
    assert_int_equal(seen.n, 3);
    assert_saw(&seen, "torch_1");
    assert_saw(&seen, "a b\nc)");
    assert_saw(&seen, "d/inner");
    assert_int_equal(seen.size_bytes, 1120);
    buffer_free(&seen.names);

    Seen stopped = {.stop_at = 2};
    assert_int_equal(shmfs_visit(root, see, &stopped), 42);
    assert_int_equal(stopped.n, 2);
    buffer_free(&stopped.names);
    temp_root_free(&temp);
}

static void test_visit_nothing(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/meminfo", "");
    Seen seen = {0};
    assert_int_equal(shmfs_visit(temp_root_open(&temp), see, &seen), -ENOENT);
    temp_root_free(&temp);
}

static void touch(const char *path, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(posix_fallocate(fd, 0, (off_t)size), 0);
    close(fd);
}

/* With our own /dev/shm, in a mount namespace. Needs root. */
static void test_live(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m,nr_inodes=100,mode=1777") < 0) {
        print_message("cannot create a mount namespace here (%s)\n", strerror(errno));
        skip();
    }
    touch("/dev/shm/torch_1_2_3", 8 << 20);
    touch("/dev/shm/new\nline (x)", 4096);
    assert_int_equal(symlink("/etc/passwd", "/dev/shm/link"), 0);
    assert_int_equal(mkfifo("/dev/shm/fifo", 0600), 0);
    assert_int_equal(symlink("/etc", "/dev/shm/directory-link"), 0);
    _cleanup_buffer_ Buffer path = {0};
    assert_int_equal(buffer_append_text(&path, "/dev/shm"), 0);
    for (unsigned depth = 1; depth <= 6; depth++) {
        char file[512];
        assert_int_equal(buffer_append_text(&path, "/d"), 0);
        assert_int_equal(mkdir(buffer_text(&path), 0700), 0);
        snprintf(file, sizeof file, "%s/f%u", buffer_text(&path), depth);
        touch(file, 4096);
    }
    assert_int_equal(mkdir("/dev/shm/other", 0700), 0);
    assert_int_equal(mount("tmpfs", "/dev/shm/other", "tmpfs", 0, "size=1m"), 0);
    touch("/dev/shm/other/file", 4096);

    Root root;
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    ShmMount shm;
    assert_int_equal(root_open("/", &root), 0);
    assert_int_equal(mounts_read(&root, 0, &arena, &mounts), 0);
    shmfs_read(&root, &mounts, &shm);
    assert_int_equal(shm.state, SHM_OK);
    assert_true(shm.mounted);
    assert_int_equal(shm.size_bytes, 64 << 20);
    assert_int_equal(shm.used_bytes, (8 << 20) + 7 * 4096);
    assert_int_equal(shm.inodes, 100);
    assert_false(shm.read_only);
    assert_false(shm.no_access);

    Seen seen = {0};
    assert_int_equal(shmfs_visit(&root, see, &seen), 0);
    assert_int_equal(seen.n, 6);
    assert_saw(&seen, "torch_1_2_3");
    assert_saw(&seen, "new\nline (x)");
    assert_saw(&seen, "d/d/d/d/f4");
    buffer_free(&seen.names);

    assert_int_equal(mount(NULL, "/dev/shm", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
    assert_int_equal(mounts_read(&root, 0, &arena, &mounts), 0);
    shmfs_read(&root, &mounts, &shm);
    assert_true(shm.read_only);
    assert_false(shm.no_access); /* the mount denies everyone, not just this user */

    bool huge = mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=0,huge=always,mode=1777") == 0;
    if (!huge) /* a kernel without huge pages */
        assert_int_equal(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=0,mode=1777"), 0);
    assert_int_equal(mounts_read(&root, 0, &arena, &mounts), 0);
    shmfs_read(&root, &mounts, &shm);
    assert_int_equal(shm.state, SHM_OK);
    assert_int_equal(shm.size_bytes, 0);
    assert_true(shm.used_bytes == U64_UNKNOWN);
    assert_int_equal(shm.huge, huge);

    assert_int_equal(chmod("/dev/shm", 0700), 0);
    assert_int_equal(seteuid(65534), 0);
    shmfs_read(&root, &mounts, &shm);
    assert_int_equal(seteuid(0), 0);
    assert_true(shm.no_access);
    root_close(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_owners),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_no_limit),
        cmocka_unit_test(test_nonsense_does_not_wrap),
        cmocka_unit_test(test_mount_options),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_visit_captured),
        cmocka_unit_test(test_visit_nothing),
        cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
