/* SPDX-License-Identifier: Apache-2.0 */
#include "vmstat.h"

int vmstat_parse_oom_kills(Text text, uint64_t *ret)
{
    TEXT_FOR_EACH_LINE (line, text_whole_lines(text)) {
        Text key;
        Text count;
        if (text_word(&line, &key) && text_equal(key, "oom_kill"))
            return text_word(&line, &count) && text_u64(count, 10, ret) == 0 ? 0 : -EBADMSG;
    }
    return -ENODATA;
}

int vmstat_read_oom_kills(const Root *root, uint64_t *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = root_read(root, "proc/vmstat", ROOT_FILE_MAX, &buffer);
    return r < 0 ? r : vmstat_parse_oom_kills((Text){buffer.data, buffer.size}, ret);
}
