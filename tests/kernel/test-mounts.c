/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts.h"
#include "temp-root.h"

static Mounts parse(const char *text, Arena *arena)
{
    Mounts mounts;
    assert_int_equal(mounts_parse(text_of(text), arena, &mounts), 0);
    return mounts;
}

static void test_fields(void **state)
{
    (void)state;
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts =
        parse("25 24 0:23 / /dev/shm rw,nosuid shared:4 master:1 - tmpfs shm rw,size=65536k\n"
              "36 35 98:1 /with\\040blank /mnt\\011tab\\012line ro - ext3 /dev/root rw,errors=continue\n"
              "37 35 0:40 / /empty rw - tmpfs  rw,size=4k",
              &arena);
    assert_int_equal(mounts.n, 3);
    const Mount *shm = &mounts.items[0];
    assert_int_equal(shm->id, 25);
    assert_int_equal(shm->parent, 24);
    assert_true(device_equal(shm->device, (Device){0, 23}));
    assert_string_equal(shm->root, "/");
    assert_string_equal(shm->mount_point, "/dev/shm");
    assert_string_equal(shm->options, "rw,nosuid");
    assert_string_equal(shm->type, "tmpfs");
    assert_string_equal(shm->source, "shm");
    assert_string_equal(shm->super_options, "rw,size=65536k");
    assert_string_equal(mounts.items[1].root, "/with blank");
    assert_string_equal(mounts.items[1].mount_point, "/mnt\ttab\nline");
    assert_string_equal(mounts.items[2].source, "");
    assert_string_equal(mounts.items[2].super_options, "rw,size=4k");
}

static void test_nonsense_is_skipped(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "\n\n",
        "garbage",
        "25",
        "25 24 0:23 / /dev/shm rw",
        "25 24 0:23 / /dev/shm rw -",
        "25 24 0:23 / /dev/shm rw - tmpfs",
        "25 24 0:23 / relative rw - tmpfs tmpfs rw",
        "x 24 0:23 / /dev/shm rw - tmpfs tmpfs rw",
        "25 24 023 / /dev/shm rw - tmpfs tmpfs rw",
        "25 24 0:99999999999 / /dev/shm rw - tmpfs tmpfs rw",
        "99999999999999999999 24 0:23 / /dev/shm rw - tmpfs tmpfs rw",
        "\xff\xfe\0\1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        _cleanup_arena_ Arena arena = {0};
        assert_int_equal(parse(lines[i], &arena).n, 0);
    }
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    assert_int_equal(mounts_parse((Text){0}, &arena, &mounts), 0);
    assert_int_equal(mounts.n, 0);
    assert_null(mounts_at(&mounts, "/dev/shm"));
}

static void test_at(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        const char *path;
        uint32_t id; /* 0: none */
    } cases[] = {
        {"plain",
         "1 0 8:1 / / rw - ext4 d rw\n2 1 0:6 / /dev rw - devtmpfs d rw\n3 2 0:7 / /dev/shm rw - tmpfs t "
         "rw\n",
         "/dev/shm", 3},
        {"no mount there", "1 0 8:1 / / rw - ext4 d rw\n2 1 0:6 / /dev rw - devtmpfs d rw\n", "/dev/shm", 0},
        {"a longer name is another", "1 0 8:1 / / rw - ext4 d rw\n3 1 0:7 / /dev/shm2 rw - tmpfs t rw\n",
         "/dev/shm", 0},
        {"on top of each other",
         "25 24 0:23 / /dev/shm rw - tmpfs t rw\n24 27 0:6 / /dev rw - devtmpfs d rw\n27 1 254:0 / / rw - "
         "ext4 d rw\n"
         "30 25 0:27 / /dev/shm rw - tmpfs t rw\n",
         "/dev/shm", 30},
        {"on top of each other, listed upside down",
         "30 25 0:27 / /dev/shm rw - tmpfs t rw\n25 24 0:23 / /dev/shm rw - tmpfs t rw\n"
         "24 27 0:6 / /dev rw - devtmpfs d rw\n27 1 254:0 / / rw - ext4 d rw\n",
         "/dev/shm", 30},
        {"hidden by a new /dev",
         "1 0 8:1 / / rw - ext4 d rw\n2 1 0:6 / /dev rw - devtmpfs d rw\n3 2 0:7 / /dev/shm rw - tmpfs t rw\n"
         "4 2 0:8 / /dev rw - tmpfs t rw\n",
         "/dev/shm", 0},
        {"seen through a new /dev",
         "1 0 8:1 / / rw - ext4 d rw\n2 1 0:6 / /dev rw - devtmpfs d rw\n3 2 0:7 / /dev/shm rw - tmpfs t rw\n"
         "4 2 0:8 / /dev rw - tmpfs t rw\n5 4 0:9 / /dev/shm rw - tmpfs t rw\n",
         "/dev/shm", 5},
        {"a root in a directory", "3 2 0:7 / /dev/shm rw - tmpfs t rw\n", "/dev/shm", 3},
        {"the root itself", "1 0 8:1 / / rw - rootfs d rw\n2 1 8:2 / / rw - ext4 d rw\n", "/", 2},
        {"a loop", "1 2 8:1 / /dev/shm rw - ext4 d rw\n2 1 8:2 / /dev/shm rw - ext4 d rw\n", "/dev/shm", 1},
        {"its own parent", "1 1 8:1 / /dev/shm rw - ext4 d rw\n", "/dev/shm", 1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        Mounts mounts = parse(cases[i].text, &arena);
        const Mount *mount = mounts_at(&mounts, cases[i].path);
        uint32_t id = mount ? mount->id : 0;
        if (id != cases[i].id)
            fail_msg("%s: mount %u instead of %u", cases[i].name, id, cases[i].id);
    }
}

static void test_option(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        const char *name;
        const char *value; /* NULL: missing */
    } cases[] = {
        {"rw,size=64k", "size", "64k"},
        {"rw,size=64k", "rw", ""},
        {"rw,size=64k", "ro", NULL},
        {"rw,resize=64k", "size", NULL},
        {"rw,size=", "size", ""},
        {"size=a=b", "size", "a=b"},
        {"", "size", NULL},
        {",,size=1", "size", "1"},
        {"rw,cpu,cpuacct", "cpu", ""},
        {"rw,cpuacct", "cpu", NULL},
        {"lowerdir=/a:/b", "/a", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Text value = TEXT("untouched");
        assert_int_equal(mount_option(cases[i].options, cases[i].name, &value), cases[i].value != NULL);
        assert_true(text_equal(value, cases[i].value ? cases[i].value : "untouched"));
    }
}

static void test_read(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_link(&temp, "7", "proc/self");
    temp_root_write(&temp, "proc/7/mountinfo", "3 2 0:7 / /dev/shm rw - tmpfs t rw\n");
    const Root *root = temp_root_open(&temp);
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    assert_int_equal(mounts_read(root, 0, &arena, &mounts), 0);
    assert_int_equal(mounts.n, 1);
    assert_int_equal(mounts_read(root, 7, &arena, &mounts), 0);
    assert_int_equal(mounts.n, 1);
    assert_int_equal(mounts_read(root, 8, &arena, &mounts), -ENOENT);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields), cmocka_unit_test(test_nonsense_is_skipped),
        cmocka_unit_test(test_at),     cmocka_unit_test(test_option),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
