/* SPDX-License-Identifier: Apache-2.0 */
#include "proc-status.h"
#include "proc-path.h"

static int ids_parse(Text value, uint32_t *ret_real, uint32_t *ret_effective)
{
    Text real;
    Text effective;
    uint32_t uid = 0;
    uint32_t euid = 0;
    if (!text_word(&value, &real) || !text_word(&value, &effective) || text_u32(real, 10, &uid) < 0 ||
        text_u32(effective, 10, &euid) < 0)
        return -EBADMSG;
    *ret_real = uid;
    *ret_effective = euid;
    return 0;
}

static void nspid_parse(Text value, ProcStatus *status)
{
    Text word;
    for (; text_word(&value, &word); status->pid_namespaces++)
        if (text_pid(word, &status->inner_pid) < 0)
            status->inner_pid = 0;
}

/* "7" or "0-3". */
static int cpu_range_parse(Text range, uint32_t *ret_first, uint32_t *ret_last)
{
    Text start;
    uint32_t first = 0;
    uint32_t last = 0;
    bool single = !text_contains(range, "-");
    if (!text_until(&range, '-', &start) || text_u32(start, 10, &first) < 0 ||
        text_u32(single ? start : range, 10, &last) < 0 || first > last)
        return -EINVAL;
    *ret_first = first;
    *ret_last = last;
    return 0;
}

uint32_t cpu_list_count(Text list)
{
    uint64_t count = 0;
    uint64_t next = 0; /* ranges ascend: a CPU that is listed twice would count twice */
    Text range;
    list = text_trim(list);
    if (text_ends(list, ","))
        return 0;
    while (text_until(&list, ',', &range)) {
        uint32_t first = 0;
        uint32_t last = 0;
        if (cpu_range_parse(range, &first, &last) < 0 || first < next)
            return 0;
        count += (uint64_t)last - first + 1;
        next = (uint64_t)last + 1;
    }
    return count > UINT32_MAX ? 0 : (uint32_t)count;
}

/* The kernel writes a newline as \\n and a backslash as two. */
static void name_unescape(Text value, char comm[static COMM_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < value.size && n < COMM_MAX - 1; i++) {
        bool escaped = value.data[i] == '\\' && i + 1 < value.size;
        i += escaped;
        comm[n++] = escaped && value.data[i] == 'n' ? '\n' : value.data[i];
    }
}

int proc_status_parse(Text text, ProcStatus *ret)
{
    ProcStatus status = {
        .rss_bytes = U64_UNKNOWN,
        .rss_peak_bytes = U64_UNKNOWN,
        .rss_anon_bytes = U64_UNKNOWN,
        .rss_file_bytes = U64_UNKNOWN,
        .rss_shmem_bytes = U64_UNKNOWN,
        .swap_bytes = U64_UNKNOWN,
    };
    bool uid = false;
    bool memory = false;
    bool threads = false;
    bool marked = false;
    uint32_t flag = 0;
    TEXT_FOR_EACH_LINE (line, text_whole_lines(text)) {
        Text value;
        if (text_key(line, "State", &value))
            status.state = value.size > 0 ? value.data[0] : '\0';
        else if (text_key(line, "Name", &value))
            name_unescape(value, status.comm);
        else if (text_key(line, "PPid", &value))
            (void)text_pid(value, &status.ppid);
        else if (text_key(line, "Uid", &value))
            uid = ids_parse(value, &status.uid, &status.euid) == 0;
        else if (text_key(line, "NSpid", &value))
            nspid_parse(value, &status);
        else if (text_key(line, "Kthread", &value))
            marked = text_u32(value, 10, &flag) == 0;
        else if (text_key(line, "VmRSS", &value)) {
            memory = true;
            (void)text_kib(value, &status.rss_bytes);
        } else if (text_key(line, "VmHWM", &value))
            (void)text_kib(value, &status.rss_peak_bytes);
        else if (text_key(line, "RssAnon", &value))
            (void)text_kib(value, &status.rss_anon_bytes);
        else if (text_key(line, "RssFile", &value))
            (void)text_kib(value, &status.rss_file_bytes);
        else if (text_key(line, "RssShmem", &value))
            (void)text_kib(value, &status.rss_shmem_bytes);
        else if (text_key(line, "VmSwap", &value))
            (void)text_kib(value, &status.swap_bytes);
        else if (text_key(line, "Threads", &value))
            threads = text_u32(value, 10, &status.threads) == 0;
        else if (text_key(line, "SigCgt", &value))
            (void)text_u64(value, 16, &status.signals_caught);
        else if (text_key(line, "CapEff", &value))
            (void)text_u64(value, 16, &status.caps_effective);
        else if (text_key(line, "NoNewPrivs", &value))
            status.no_new_privs = text_equal(value, "1");
        else if (text_key(line, "Seccomp", &value))
            (void)text_u32(value, 10, &status.seccomp);
        else if (text_key(line, "Cpus_allowed_list", &value))
            status.cpus_allowed = cpu_list_count(value);
    }
    if (!uid)
        return -EBADMSG;
    /* Threads follows the Vm lines: if it is missing, the text was truncated before them, and they may exist.
     */
    if (!memory && threads) {
        status.rss_bytes = 0;
        status.rss_peak_bytes = 0;
        status.rss_anon_bytes = 0;
        status.rss_file_bytes = 0;
        status.rss_shmem_bytes = 0;
        status.swap_bytes = 0;
        status.kernel_thread = status.state != 'Z' && status.state != 'X';
    }
    if (marked) /* Linux 6.8 and later */
        status.kernel_thread = flag != 0;
    *ret = status;
    return 0;
}

int proc_status_read(const Root *root, int pid, ProcStatus *ret)
{
    _cleanup_buffer_ Buffer buffer = {0};
    int r = proc_read(root, pid, "status", &buffer);
    return r < 0 ? r : proc_status_parse((Text){buffer.data, buffer.size}, ret);
}
