/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mounts.h"
#include "proc-path.h"

/* A path with more mounts on top of each other than this is an invented loop. */
enum { MOUNT_DEPTH_MAX = 128 };

static char *field_copy(Text field, Arena *arena)
{
    char *copy = arena_alloc(arena, field.size + 1);
    if (copy)
        copy[text_unescape_octal(field, copy)] = '\0';
    return copy;
}

/* 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue */
static int mount_parse(Text line, Arena *arena, Mount *ret)
{
    Text id;
    Text parent;
    Text device;
    Text fields[6]; /* root, mount point, options, type, source, super options */
    Mount mount = {0};
    if (!text_word(&line, &id) || text_u32(id, 10, &mount.id) < 0 || !text_word(&line, &parent) ||
        text_u32(parent, 10, &mount.parent) < 0 || !text_word(&line, &device) ||
        device_numbers_parse(device, 10, &mount.device) < 0)
        return -EBADMSG;
    for (size_t i = 0; i < 3; i++)
        if (!text_word(&line, &fields[i]))
            return -EBADMSG;
    if (fields[1].data[0] != '/')
        return -EBADMSG;
    Text word;
    do
        if (!text_word(&line, &word))
            return -EBADMSG;
    while (!text_equal(word, "-"));
    if (!text_word(&line, &fields[3]))
        return -EBADMSG;

    /* A source may be empty: then only the blanks around it show it. */
    Text rest = {line.data + (line.size > 0), line.size - (line.size > 0)};
    if (!text_until(&rest, ' ', &fields[4]))
        return -EBADMSG;
    fields[5] = text_trim(rest);

    char **const slots[] = {&mount.root, &mount.mount_point, &mount.options,
                            &mount.type, &mount.source,      &mount.super_options};
    for (size_t i = 0; i < ARRAY_SIZE(slots); i++)
        if (!(*slots[i] = field_copy(fields[i], arena)))
            return -ENOMEM;
    *ret = mount;
    return 0;
}

int mounts_parse(Text text, Arena *arena, Mounts *ret)
{
    Mounts mounts = {0};
    TEXT_FOR_EACH_LINE (line, text) {
        Mount mount;
        int r = mount_parse(line, arena, &mount);
        if (r == -ENOMEM)
            return r;
        if (r < 0)
            continue;
        Mount *slot = ARENA_PUSH(arena, mounts.items, mounts.n, mounts.capacity);
        if (!slot)
            return -ENOMEM;
        *slot = mount;
    }
    *ret = mounts;
    return 0;
}

int mounts_read(const Root *root, int pid, Arena *arena, Mounts *ret)
{
    _cleanup_buffer_ Buffer text = {0};
    int r = proc_read(root, pid, "mountinfo", &text);
    return r < 0 ? r : mounts_parse((Text){text.data, text.size}, arena, ret);
}

/* Whether path is `top` or below it. */
static bool path_is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    while (n > 0 && top[n - 1] == '/')
        n--;
    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static const Mount *mount_parent(const Mounts *mounts, const Mount *mount)
{
    for (size_t i = 0; i < mounts->n; i++)
        if (mounts->items[i].id == mount->parent && &mounts->items[i] != mount)
            return &mounts->items[i];
    return NULL;
}

/* The mount on `mount` that path resolution enters first. Of several at one place, the newest. */
static const Mount *mount_child(const Mounts *mounts, const Mount *mount, const char *path)
{
    const Mount *first = NULL;
    for (size_t i = 0; i < mounts->n; i++) {
        const Mount *child = &mounts->items[i];
        if (child->parent == mount->id && child != mount && path_is_below(path, child->mount_point) &&
            (!first || strlen(child->mount_point) <= strlen(first->mount_point)))
            first = child;
    }
    return first;
}

/*
 * A mount that is listed at the path may be hidden: something was mounted over it, or over a directory above
 * it. So climb from any mount that is listed there to the first of all mounts, and go down again as path
 * resolution does.
 */
const Mount *mounts_at(const Mounts *mounts, const char *path)
{
    const Mount *mount = NULL;
    for (size_t i = 0; i < mounts->n && !mount; i++)
        if (strcmp(mounts->items[i].mount_point, path) == 0)
            mount = &mounts->items[i];
    if (!mount)
        return NULL;

    const Mount *next = mount;
    for (unsigned depth = 0; next && depth < MOUNT_DEPTH_MAX; depth++) {
        mount = next;
        next = mount_parent(mounts, mount);
    }
    next = mount;
    for (unsigned depth = 0; next && depth < MOUNT_DEPTH_MAX; depth++) {
        mount = next;
        next = mount_child(mounts, mount, path);
    }
    return strcmp(mount->mount_point, path) == 0 ? mount : NULL;
}

bool mount_option(const char *options, const char *name, Text *ret_value)
{
    Text rest = text_of(options);
    Text option;
    while (text_until(&rest, ',', &option)) {
        Text key;
        if (!text_until(&option, '=', &key) || !text_equal(key, name))
            continue;
        *ret_value = option;
        return true;
    }
    return false;
}
