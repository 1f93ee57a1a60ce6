/* SPDX-License-Identifier: Apache-2.0 */
#include "proc-schedstat.h"
#include "proc-path.h"

int proc_schedstat_parse(Text text, ProcSchedstat *ret)
{
    ProcSchedstat stat = {0};
    uint64_t slices = 0;
    Text words[3];
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (!text_word(&text, &words[i]))
            return -EBADMSG;
    /* Without the third number the second may be truncated. */
    if (text_u64(words[0], 10, &stat.ran_nsec) < 0 || text_u64(words[1], 10, &stat.waited_nsec) < 0 ||
        text_u64(words[2], 10, &slices) < 0)
        return -EBADMSG;
    *ret = stat;
    return 0;
}

int proc_schedstat_read(const Root *root, int pid, ProcSchedstat *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "schedstat", &buffer);
    return r < 0 ? r : proc_schedstat_parse((Text){buffer.data, buffer.size}, ret);
}
