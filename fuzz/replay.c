/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target once over every file of a corpus directory, so that the corpus is an ordinary test. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "fuzz.h"

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (!dir) {
        fprintf(stderr, "usage: %s CORPUS-DIRECTORY (of at least one file)\n", argv[0]);
        return 64;
    }
    unsigned count = 0;
    Buffer input = {0};
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        buffer_clear(&input);
        if (fd < 0 || buffer_read_fd(&input, fd, 1 << 24) < 0) {
            perror(entry->d_name);
            return 1;
        }
        fd_close(fd);
        LLVMFuzzerTestOneInput((const uint8_t *)buffer_text(&input), input.size);
        count++;
    }
    closedir(dir);
    buffer_free(&input);
    printf("%u inputs\n", count);
    return count == 0;
}
