/* SPDX-License-Identifier: Apache-2.0 */
#include "smaps.h"
#include "proc-path.h"

typedef struct SmapsSums {
    uint64_t rss;
    uint64_t pss;
    uint64_t pss_shmem;
    uint64_t private_clean;
    uint64_t private_dirty;
    uint64_t private_hugetlb;
    uint64_t swap;
} SmapsSums;

#define SMAPS_SUMS_UNKNOWN                                                                                   \
    ((SmapsSums){U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN})

static void sums_take(Text line, SmapsSums *sums)
{
    const struct {
        const char *key;
        uint64_t *bytes;
    } fields[] = {
        {"Rss", &sums->rss},
        {"Pss", &sums->pss},
        {"Pss_Shmem", &sums->pss_shmem},
        {"Private_Clean", &sums->private_clean},
        {"Private_Dirty", &sums->private_dirty},
        {"Private_Hugetlb", &sums->private_hugetlb},
        {"Swap", &sums->swap},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        Text value;
        if (text_key(line, fields[i].key, &value)) {
            (void)text_kib(value, fields[i].bytes);
            return;
        }
    }
}

/* An unknown or too large figure makes the sum unknown. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t total = 0;
    return a == U64_UNKNOWN || b == U64_UNKNOWN || __builtin_add_overflow(a, b, &total) ? U64_UNKNOWN : total;
}

static Smaps figures_smaps(const SmapsSums *sums)
{
    uint64_t hugetlb = sums->private_hugetlb == U64_UNKNOWN ? 0 : sums->private_hugetlb; /* since 4.4 */
    return (Smaps){
        .rss_bytes = sums->rss,
        .pss_bytes = sums->pss,
        .pss_shmem_bytes = sums->pss_shmem,
        .private_bytes = sum(sum(sums->private_clean, sums->private_dirty), hugetlb),
        .swap_bytes = sums->swap,
    };
}

int smaps_rollup_parse(Text text, Smaps *ret)
{
    SmapsSums sums = SMAPS_SUMS_UNKNOWN;
    TEXT_FOR_EACH_LINE (line, text)
        sums_take(line, &sums);
    if (sums.rss == U64_UNKNOWN || sums.pss == U64_UNKNOWN)
        return -EBADMSG;
    *ret = figures_smaps(&sums);
    return 0;
}

/* Takes the lines up to the first line of the next mapping. */
static SmapsSums figures_parse(Text *rest)
{
    SmapsSums sums = SMAPS_SUMS_UNKNOWN;
    Text line;
    MapEntry next;
    for (Text ahead = *rest; text_line(&ahead, &line) && maps_parse_line(line, &next) < 0; *rest = ahead)
        sums_take(line, &sums);
    return sums;
}

bool smaps_next(Text *rest, MapEntry *ret_entry, Smaps *ret_sizes)
{
    Text line;
    while (text_line(rest, &line)) {
        MapEntry entry;
        if (maps_parse_line(line, &entry) < 0)
            continue;
        SmapsSums sums = figures_parse(rest);
        Smaps sizes = figures_smaps(&sums);
        /* Swap is the last of them: without it the file is truncated here. */
        if (sizes.rss_bytes == U64_UNKNOWN || sizes.pss_bytes == U64_UNKNOWN ||
            sizes.private_bytes == U64_UNKNOWN || sizes.swap_bytes == U64_UNKNOWN)
            continue;
        *ret_entry = entry;
        *ret_sizes = sizes;
        return true;
    }
    return false;
}

int smaps_read(const Root *root, int pid, Buffer *buffer)
{
    return proc_read(root, pid, "smaps", buffer);
}

static int smaps_sum(const Root *root, int pid, Buffer *buffer, Smaps *ret)
{
    int r = smaps_read(root, pid, buffer);
    if (r < 0)
        return r;
    if (buffer->size == 0)
        return -ESRCH; /* a zombie or a kernel thread; smaps_rollup gives the same error */
    if (buffer->size >= ROOT_FILE_MAX)
        return -EFBIG; /* truncated: the sum would be wrong */
    Smaps total = {.pss_shmem_bytes = U64_UNKNOWN};
    Text rest = {buffer->data, buffer->size};
    MapEntry entry;
    Smaps sizes;
    bool any = false;
    while (smaps_next(&rest, &entry, &sizes)) {
        any = true;
        total.rss_bytes = sum(total.rss_bytes, sizes.rss_bytes);
        total.pss_bytes = sum(total.pss_bytes, sizes.pss_bytes);
        total.private_bytes = sum(total.private_bytes, sizes.private_bytes);
        total.swap_bytes = sum(total.swap_bytes, sizes.swap_bytes);
    }
    if (!any)
        return -EBADMSG;
    *ret = total;
    return 0;
}

int smaps_rollup_read(const Root *root, int pid, Smaps *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "smaps_rollup", &buffer);
    if (r == -ENOENT && root_exists(root, PROC_PATH(pid, "")))
        return smaps_sum(root, pid, &buffer, ret);
    return r < 0 ? r : smaps_rollup_parse((Text){buffer.data, buffer.size}, ret);
}
