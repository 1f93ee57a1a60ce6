#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "recording.h"

/* A file without a name: SQLite finds nothing beside it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    _cleanup_close_ int fd = memfd_create("recording", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    _cleanup_history_ History history = {0};
    if (recording_read(path, &history) < 0)
        return 0;
    for (size_t i = 1; i < history.series.n; i++)
        if (history.series.seconds[i] <= history.series.seconds[i - 1])
            __builtin_trap();
    return 0;
}
