/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "proc-path.h"
#include "rlimits.h"

static int limit_parse(Text *rest, uint64_t *ret)
{
    Text word;
    uint64_t value = 0;
    if (!text_word(rest, &word))
        return -EBADMSG;
    if (text_equal(word, "unlimited"))
        value = RLIMIT_UNLIMITED;
    else if (text_u64(word, 10, &value) < 0)
        return -EBADMSG;
    *ret = MIN(value, RLIMIT_UNLIMITED);
    return 0;
}

/* "Max open files   1024   524288   files". Without the unit at its end the line may be truncated. */
static bool limits_line(Text line, const char *name, uint64_t *ret_soft, uint64_t *ret_hard)
{
    if (!text_starts(line, name))
        return false;
    size_t n = strlen(name);
    Text rest = {line.data + n, line.size - n};
    Text unit;
    uint64_t soft = 0;
    uint64_t hard = 0;
    if (limit_parse(&rest, &soft) < 0 || limit_parse(&rest, &hard) < 0 || !text_word(&rest, &unit))
        return false;
    *ret_soft = soft;
    *ret_hard = hard;
    return true;
}

int rlimits_parse(Text text, RLimits *ret)
{
    RLimits limits = {U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN};
    uint64_t hard;
    TEXT_FOR_EACH_LINE (line, text)
        (void)(limits_line(line, "Max open files ", &limits.open_files_soft, &limits.open_files_hard) ||
               limits_line(line, "Max address space ", &limits.address_space_soft, &hard) ||
               limits_line(line, "Max locked memory ", &limits.locked_soft, &hard));
    if (limits.open_files_soft == U64_UNKNOWN)
        return -EBADMSG;
    *ret = limits;
    return 0;
}

int rlimits_read(const Root *root, int pid, RLimits *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "limits", &buffer);
    return r < 0 ? r : rlimits_parse((Text){buffer.data, buffer.size}, ret);
}

int sysctl_read(const Root *root, const char *name, uint64_t *ret)
{
    char path[256];
    if (snprintf(path, sizeof path, "proc/sys/%s", name) >= (int)sizeof path)
        return -ENOENT;
    _cleanup_buffer_ Buffer buffer = {0};
    int r = root_read(root, path, ROOT_FILE_MAX, &buffer);
    if (r < 0)
        return r;
    return text_u64(text_trim((Text){buffer.data, buffer.size}), 10, ret) < 0 ? -EBADMSG : 0;
}
