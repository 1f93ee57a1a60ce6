/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "proc-path.h"
#include "threads.h"

enum { NAME_SIZE_MAX = 64 };

int threads_visit(const Root *root, int pid, ThreadVisit visit, void *context)
{
    DIR *directory = root_list(root, PROC_PATH(pid, "task"));
    if (!directory)
        return -errno;
    _cleanup_buffer_ Buffer name = {0};
    int r = 0;
    for (const struct dirent *item; r == 0 && (item = readdir(directory));) {
        int tid = 0;
        char path[PROC_PATH_MAX];
        if (text_pid(text_of(item->d_name), &tid) < 0)
            continue;
        snprintf(path, sizeof path, "task/%d/comm", tid);
        r = root_read(root, PROC_PATH(pid, path), NAME_SIZE_MAX, &name);
        if (r == -ENOMEM)
            break;
        r = r < 0 ? 0 : visit(text_trim((Text){name.data, name.size}), context); /* < 0: it has ended */
    }
    closedir(directory);
    return r;
}
