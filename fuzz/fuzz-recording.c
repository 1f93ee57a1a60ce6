/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fuzz.h"
#include "recording.h"

/* SQLite wants a file with a name, and looks for others beside it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    char folder[] = "/tmp/shmguard-fuzz-XXXXXX";
    char path[64];
    if (!mkdtemp(folder))
        return 0;
    snprintf(path, sizeof path, "%s/x", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool whole = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    fd_close(fd);

    _cleanup_history_ History history = {0};
    if (whole && recording_read(path, &history) >= 0)
        for (size_t i = 1; i < history.series.n; i++)
            if (history.series.seconds[i] <= history.series.seconds[i - 1])
                __builtin_trap();

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        snprintf(path, sizeof path, "%s/x%s", folder, endings[i]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}
