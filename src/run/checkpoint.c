/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "lease.h"

/* --- Formats ------------------------------------------------------------------------------------------ */

static uint64_t little_endian(const char *p, unsigned n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | (unsigned char)p[n];
    return value;
}

/* Searches backwards from `limit`. */
static bool directory_fits(uint64_t directory, uint64_t bytes, uint64_t limit)
{
    return directory <= limit && bytes <= limit - directory;
}

/* Archives over 4 GiB have a second end record; a locator right before the first record leads to it. */
static int zip64_end_parse(Text tail, uint64_t file_bytes, size_t end, uint64_t *ret_directory)
{
    enum { LOCATOR_BYTES = 20, END64_BYTES = 56 };
    if (end < LOCATOR_BYTES)
        return -EBADMSG;
    const char *locator = tail.data + end - LOCATOR_BYTES;
    uint64_t begin = file_bytes - tail.size; /* of the tail in the file */
    uint64_t place = little_endian(locator + 8, 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || place < begin || place - begin > end - LOCATOR_BYTES ||
        end - LOCATOR_BYTES - (place - begin) < END64_BYTES)
        return -EBADMSG;
    const char *end64 = tail.data + (place - begin);
    uint64_t bytes = little_endian(end64 + 40, 8);
    uint64_t directory = little_endian(end64 + 48, 8);
    if (memcmp(end64, "PK\6\6", 4) != 0 || !directory_fits(directory, bytes, place))
        return -EBADMSG;
    *ret_directory = directory;
    return 0;
}

int zip_end_parse(Text tail, uint64_t file_bytes, uint64_t *ret_directory)
{
    enum { END_BYTES = 22 };
    if (tail.size < END_BYTES || tail.size > file_bytes)
        return -EBADMSG;
    /* A comment, which is rare, stands between the record and the end of the file. */
    for (size_t end = tail.size - END_BYTES + 1; end-- > 0;) {
        const char *record = tail.data + end;
        if (memcmp(record, "PK\5\6", 4) != 0 || little_endian(record + 20, 2) != tail.size - END_BYTES - end)
            continue;
        uint64_t bytes = little_endian(record + 12, 4);
        uint64_t directory = little_endian(record + 16, 4);
        if (bytes == UINT32_MAX || directory == UINT32_MAX || little_endian(record + 10, 2) == UINT16_MAX)
            return zip64_end_parse(tail, file_bytes, end, ret_directory);
        if (!directory_fits(directory, bytes, file_bytes - tail.size + end))
            continue;
        *ret_directory = directory;
        return 0;
    }
    return -EBADMSG;
}

static Text blanks_skip(Text a)
{
    size_t n = 0;
    while (n < a.size && (a.data[n] == ' ' || a.data[n] == '\t' || a.data[n] == '\r' || a.data[n] == '\n'))
        n++;
    return text_skip(a, n);
}

static bool sign_skip(Text *a, char sign)
{
    *a = blanks_skip(*a);
    if (a->size == 0 || a->data[0] != sign)
        return false;
    *a = blanks_skip(text_skip(*a, 1));
    return true;
}

/* ": [begin, end]" */
static int offsets_parse(Text a, uint64_t *ret_end)
{
    uint64_t begin = 0;
    uint64_t end = 0;
    if (!sign_skip(&a, ':') || !sign_skip(&a, '['))
        return -EBADMSG;
    Text digits = text_digits(a);
    a = text_skip(a, digits.size);
    if (text_u64(digits, 10, &begin) < 0 || !sign_skip(&a, ','))
        return -EBADMSG;
    digits = text_digits(a);
    a = text_skip(a, digits.size);
    if (text_u64(digits, 10, &end) < 0 || !sign_skip(&a, ']') || begin > end)
        return -EBADMSG;
    *ret_end = end;
    return 0;
}

int safetensors_parse(Text header, uint64_t *ret_bytes)
{
    /* The quotes keep a tensor's own name from being taken for the key: inside a name they are escaped. */
    static const char key[] = "\"data_offsets\"";
    Text trimmed = text_trim(header);
    if (!text_starts(trimmed, "{") || !text_ends(trimmed, "}"))
        return -EBADMSG;
    uint64_t most = 0;
    while (text_after(header, key, &header)) {
        uint64_t end = 0;
        int r = offsets_parse(header, &end);
        if (r < 0)
            return r;
        most = MAX(most, end);
    }
    *ret_bytes = most;
    return 0;
}

/* --- Files -------------------------------------------------------------------------------------------- */

static bool read_at(int fd, void *bytes, size_t n, uint64_t offset)
{
    return pread(fd, bytes, n, (off_t)offset) == (ssize_t)n;
}

static CheckpointState zip_check(int fd, uint64_t file_bytes)
{
    size_t n = (size_t)MIN(file_bytes, (uint64_t)ZIP_TAIL_BYTES);
    _cleanup_free_ char *tail = malloc(n);
    uint64_t directory = 0;
    char entry[4];
    if (!tail || !read_at(fd, tail, n, file_bytes - n))
        return CHECKPOINT_UNREADABLE;
    if (zip_end_parse((Text){tail, n}, file_bytes, &directory) < 0)
        return CHECKPOINT_CUT;
    /* A file with zeros from a machine crash, or a half-copied file, has no directory at that place. */
    if (!read_at(fd, entry, sizeof entry, directory) || memcmp(entry, "PK\1\2", 4) != 0)
        return CHECKPOINT_CUT;
    return CHECKPOINT_WHOLE;
}

static CheckpointState safetensors_check(int fd, uint64_t file_bytes)
{
    const uint64_t most = 100000000; /* the format's own limit */
    char size[8];
    if (file_bytes < sizeof size || !read_at(fd, size, sizeof size, 0))
        return CHECKPOINT_CUT;
    uint64_t n = little_endian(size, sizeof size);
    if (n > most || n > file_bytes - sizeof size)
        return CHECKPOINT_CUT;
    _cleanup_free_ char *header = malloc(MAX((size_t)n, (size_t)1));
    uint64_t bytes = 0;
    if (!header || !read_at(fd, header, (size_t)n, sizeof size))
        return CHECKPOINT_UNREADABLE;
    if (safetensors_parse((Text){header, (size_t)n}, &bytes) < 0 || bytes > file_bytes - sizeof size - n)
        return CHECKPOINT_CUT;
    return CHECKPOINT_WHOLE;
}

static CheckpointState content_check(int fd, const char *name, uint64_t file_bytes)
{
    static const char zip[] = "PK\3\4";
    char begin[4];
    size_t n = (size_t)MIN(file_bytes, (uint64_t)sizeof begin);
    if (!read_at(fd, begin, n, 0))
        return CHECKPOINT_UNREADABLE;
    if (n >= 2 && memcmp(begin, zip, n) == 0)
        return zip_check(fd, file_bytes);
    if (text_ends(text_of(name), ".safetensors"))
        return safetensors_check(fd, file_bytes);
    return CHECKPOINT_WHOLE;
}

static bool name_is_temporary(const char *name)
{
    static const char *const ends[] = {".tmp", ".temp", ".part", ".partial", ".incomplete", "~"};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (text_ends(text_of(name), ends[i]))
            return true;
    return text_starts(text_of(name),
                       "tmp-"); /* Transformers: tmp-checkpoint-500, renamed when it is whole */
}

static CheckpointState file_check(int directory, const char *path, const char *name, bool *ret_untold)
{
    /* Without O_NONBLOCK, a pipe that has taken the file's place would block us. */
    _cleanup_close_ int fd = openat(directory, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode))
        return CHECKPOINT_UNREADABLE;
    if (stat.st_size == 0)
        return CHECKPOINT_EMPTY;
    FileOpen written = lease_ask_writers(fd);
    if (written == OPEN_SOMEWHERE)
        return CHECKPOINT_WRITTEN;
    *ret_untold |= written == OPEN_CANNOT_TELL;
    return content_check(fd, name, (uint64_t)stat.st_size);
}

/* --- Files and directories ---------------------------------------------------------------------------- */

/* Links within a directory are ignored: they lead outside, or in circles. */
enum { DEPTH_MAX = 8, FILES_MAX = 100000 };

/* Examines a file, or everything in a directory; with `check`, also whether it is complete. */
typedef struct CheckpointWalk {
    bool check;
    size_t n_files;
    uint64_t bytes;
    struct timespec newest;
    CheckpointState state; /* of the first file that is not complete */
    bool untold;           /* it cannot be determined whether a process is writing to it */
    bool any_shard;        /* of torch.distributed.checkpoint */
    bool any_metadata;     /* of torch.distributed.checkpoint */
} CheckpointWalk;

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

static void walk_file(CheckpointWalk *walk, int directory, const char *path, const char *name,
                      const struct stat *stat)
{
    walk->bytes += (uint64_t)stat->st_size;
    walk->any_shard |= text_ends(text_of(name), ".distcp");
    walk->any_metadata |= strcmp(name, ".metadata") == 0;
    if (is_later(&stat->st_mtim, &walk->newest))
        walk->newest = stat->st_mtim;
    if (!walk->check)
        return;
    CheckpointState state = CHECKPOINT_TEMPORARY;
    if (!name_is_temporary(name))
        state = file_check(directory, path, name, &walk->untold);
    if (state != CHECKPOINT_EMPTY) /* in a directory, a marker file for completion is empty */
        walk->state = state;
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX deep */
static void walk_directory(CheckpointWalk *walk, int parent, const char *path, unsigned depth)
{
    int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth > 0 ? O_NOFOLLOW : 0));
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        fd_close(fd);
        walk->state = CHECKPOINT_UNREADABLE;
        return;
    }
    for (struct dirent *entry; walk->state == CHECKPOINT_WHOLE && (entry = readdir(list));) {
        struct stat stat;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (++walk->n_files > FILES_MAX || fstatat(fd, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) < 0)
            walk->state = CHECKPOINT_UNREADABLE;
        else if (S_ISREG(stat.st_mode))
            walk_file(walk, fd, entry->d_name, entry->d_name, &stat);
        else if (S_ISDIR(stat.st_mode) && depth + 1 < DEPTH_MAX)
            walk_directory(walk, fd, entry->d_name, depth + 1);
    }
    closedir(list);
}

/* The last part of a path, even if a slash follows it. */
static Text path_name(const char *path)
{
    Text name = text_of(path);
    while (name.size > 1 && name.data[name.size - 1] == '/')
        name.size--;
    for (size_t i = name.size; i-- > 0;)
        if (name.data[i] == '/' && name.size > 1)
            return text_skip(name, i + 1);
    return name;
}

/* False: not a checkpoint at all. */
static bool walk_path(const char *path, bool check, CheckpointWalk *ret)
{
    struct stat stat;
    if (fstatat(AT_FDCWD, path, &stat, 0) < 0 || !(S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode)))
        return false;
    char name[NAME_MAX + 1] = "";
    Text last = path_name(path);
    memcpy(name, last.data, MIN(last.size, sizeof name - 1));
    *ret = (CheckpointWalk){.check = check};
    if (S_ISREG(stat.st_mode))
        walk_file(ret, AT_FDCWD, path, name, &stat);
    else if (check && name_is_temporary(name))
        ret->state = CHECKPOINT_TEMPORARY;
    else
        walk_directory(ret, AT_FDCWD, path, 0);
    if (ret->n_files == 0 && ret->bytes == 0) /* an empty directory */
        ret->newest = stat.st_mtim;
    return true;
}

/* It cannot be determined whether a process is writing to it: it must stay unchanged until two seconds after
 * its last change, and for a moment at least. That time may come from another machine's clock, so we never
 * wait longer than two seconds. */
static bool stays_the_same(const char *path, const CheckpointWalk *before)
{
    enum { QUIET_MSEC = 2000, MOMENT_MSEC = 100 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_msec = (int64_t)(now.tv_sec - before->newest.tv_sec) * 1000 +
                       (now.tv_nsec - before->newest.tv_nsec) / 1000000;
    int64_t wait_msec = MIN(MAX(QUIET_MSEC - age_msec, (int64_t)MOMENT_MSEC), (int64_t)QUIET_MSEC);
    struct timespec wait = {wait_msec / 1000, wait_msec % 1000 * 1000000};
    while (nanosleep(&wait, &wait) < 0 && errno == EINTR)
        ;
    CheckpointWalk after;
    return walk_path(path, false, &after) && after.n_files == before->n_files &&
           after.bytes == before->bytes && !is_later(&after.newest, &before->newest) &&
           !is_later(&before->newest, &after.newest);
}

static CheckpointState checkpoint_check(const char *path)
{
    CheckpointWalk walk;
    if (!walk_path(path, true, &walk))
        return CHECKPOINT_UNREADABLE;
    if (walk.state != CHECKPOINT_WHOLE)
        return walk.state;
    if (walk.bytes == 0)
        return CHECKPOINT_EMPTY;
    if (walk.any_shard && !walk.any_metadata)
        return CHECKPOINT_CUT;
    return walk.untold && !stays_the_same(path, &walk) ? CHECKPOINT_WRITTEN : CHECKPOINT_WHOLE;
}

/* --- Which one ---------------------------------------------------------------------------------------- */

static int newest_first(const void *left, const void *right)
{
    const Checkpoint *a = left;
    const Checkpoint *b = right;
    if (is_later(&a->changed, &b->changed))
        return -1;
    if (is_later(&b->changed, &a->changed))
        return 1;
    return strverscmp(b->path, a->path); /* step-1000 is later than step-999 */
}

static int matches_look(const glob_t *matches, Arena *arena, Checkpoints *found)
{
    for (size_t i = 0; i < matches->gl_pathc; i++) {
        CheckpointWalk walk;
        const char *path = matches->gl_pathv[i];
        if (!walk_path(path, false, &walk))
            continue;
        Checkpoint *slot = ARENA_PUSH(arena, found->items, found->n, found->capacity);
        if (!slot || !(path = arena_copy(arena, path, strlen(path))))
            return -ENOMEM;
        *slot = (Checkpoint){.path = path, .changed = walk.newest};
    }
    return 0;
}

int checkpoints_find(const char *glob_text, Arena *arena, Checkpoints *ret)
{
    Checkpoints found = {0};
    glob_t matches = {0};
    int r = glob(glob_text, GLOB_BRACE | GLOB_TILDE | GLOB_NOSORT, NULL, &matches);
    if (r == GLOB_NOSPACE)
        r = -ENOMEM;
    else
        r = matches_look(&matches, arena, &found);
    globfree(&matches);
    if (r < 0)
        return r;
    if (found.n > 1)
        qsort(found.items, found.n, sizeof *found.items, newest_first);
    for (size_t i = 0; i < found.n; i++) {
        found.items[i].state = checkpoint_check(found.items[i].path);
        if (found.items[i].state == CHECKPOINT_WHOLE)
            found.n = i + 1;
    }
    *ret = found;
    return 0;
}

const Checkpoint *checkpoints_whole(const Checkpoints *checkpoints)
{
    const Checkpoint *last = checkpoints->n > 0 ? &checkpoints->items[checkpoints->n - 1] : NULL;
    return last && last->state == CHECKPOINT_WHOLE ? last : NULL;
}
