/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "proc-path.h"
#include "proc-statm.h"

static int word_pages(Text *rest, uint64_t page_bytes, uint64_t *ret_bytes)
{
    Text word;
    uint64_t pages = 0;
    if (!text_word(rest, &word) || text_u64(word, 10, &pages) < 0 ||
        __builtin_mul_overflow(pages, page_bytes, &pages))
        return -EBADMSG;
    *ret_bytes = pages;
    return 0;
}

int proc_statm_parse(Text text, uint64_t page_bytes, ProcStatm *ret)
{
    ProcStatm statm = {0};
    Text more; /* without a fourth figure the third may be truncated */
    if (word_pages(&text, page_bytes, &statm.size_bytes) < 0 ||
        word_pages(&text, page_bytes, &statm.resident_bytes) < 0 ||
        word_pages(&text, page_bytes, &statm.shared_bytes) < 0 || !text_word(&text, &more))
        return -EBADMSG;
    *ret = statm;
    return 0;
}

int proc_statm_read(const Root *root, int pid, ProcStatm *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "statm", &buffer);
    return r < 0 ? r
                 : proc_statm_parse((Text){buffer.data, buffer.size}, (uint64_t)sysconf(_SC_PAGESIZE), ret);
}
