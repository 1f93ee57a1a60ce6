/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "proc-path.h"
#include "proc-stat.h"

/* Ids are -1 while the process is being reaped, and 0 when they belong to an outer namespace. */
static int word_int(Text *rest, int *ret)
{
    Text word;
    if (!text_word(rest, &word))
        return -EBADMSG;
    bool negative = text_starts(word, "-");
    Text digits = {word.data + negative, word.size - negative};
    uint64_t value = 0;
    if (text_u64(digits, 10, &value) < 0 || value > INT32_MAX)
        return -EBADMSG;
    *ret = negative ? -(int)value : (int)value;
    return 0;
}

static int word_u64(Text *rest, uint64_t *ret)
{
    Text word;
    return text_word(rest, &word) && text_u64(word, 10, ret) == 0 ? 0 : -EBADMSG;
}

static int words_skip(Text *rest, unsigned n)
{
    Text word;
    while (n-- > 0)
        if (!text_word(rest, &word))
            return -EBADMSG;
    return 0;
}

/* "123 (name) …": the name ends at the last parenthesis, because no later field has one. */
static int head_parse(Text *rest, int *ret_pid, Text *ret_comm)
{
    Text text = *rest;
    Text pid;
    const char *close = text.size > 0 ? memrchr(text.data, ')', text.size) : NULL;
    if (!close || !text_until(&text, ' ', &pid) || !text_starts(text, "(") || text_pid(pid, ret_pid) < 0)
        return -EBADMSG;
    *ret_comm = (Text){text.data + 1, (size_t)(close - text.data) - 1};
    *rest = (Text){close + 1, text.size - (size_t)(close + 1 - text.data)};
    return 0;
}

/* Only a zombie's code is its end: in other processes it may be left from a ptrace stop. What follows the
 * start may be truncated. */
static int ended_parse(Text rest, char state)
{
    int ended = 0;
    bool known = state == 'Z' && words_skip(&rest, 28) == 0 && word_int(&rest, &ended) == 0;
    return known ? ended : 0;
}

int proc_stat_parse(Text text, ProcStat *ret)
{
    ProcStat stat = {0};
    Text comm;
    Text state;
    uint64_t threads = 0;
    if (head_parse(&text, &stat.pid, &comm) < 0 || !text_word(&text, &state) || state.size != 1 ||
        word_int(&text, &stat.ppid) < 0 || word_int(&text, &stat.pgrp) < 0 ||
        word_int(&text, &stat.session) < 0 || words_skip(&text, 3) < 0 /* terminal, its group, flags */ ||
        word_u64(&text, &stat.minor_faults) < 0 || words_skip(&text, 1) < 0 /* of children */ ||
        word_u64(&text, &stat.major_faults) < 0 || words_skip(&text, 1) < 0 ||
        word_u64(&text, &stat.user_ticks) < 0 || word_u64(&text, &stat.system_ticks) < 0 ||
        words_skip(&text, 4) < 0 /* children's times, priority, nice */ || word_u64(&text, &threads) < 0 ||
        threads > UINT32_MAX || words_skip(&text, 1) < 0 /* an obsolete timer */ ||
        word_u64(&text, &stat.start_ticks) < 0 ||
        words_skip(&text, 1) < 0 /* start_ticks was not truncated */)
        return -EBADMSG;
    memcpy(stat.comm, comm.data, MIN(comm.size, sizeof stat.comm - 1));
    stat.state = state.data[0];
    stat.threads = (uint32_t)threads;
    stat.ended = ended_parse(text, stat.state);
    *ret = stat;
    return 0;
}

int proc_stat_read(const Root *root, int pid, ProcStat *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "stat", &buffer);
    return r < 0 ? r : proc_stat_parse((Text){buffer.data, buffer.size}, ret);
}

bool proc_stat_is_over(const ProcStat *stat)
{
    return (stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1;
}
