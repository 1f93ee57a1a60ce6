/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "mounts.h"
#include "shmfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ Arena arena = {0};
    Mounts mounts;
    if (mounts_parse((Text){(const char *)data, size}, &arena, &mounts) < 0)
        return 0;
    const Mount *shm = mounts_at(&mounts, "/dev/shm");
    if (shm && strcmp(shm->mount_point, "/dev/shm") != 0)
        __builtin_trap();
    for (size_t i = 0; i < mounts.n; i++) {
        const Mount *mount = &mounts.items[i];
        Text value;
        if (mount->mount_point[0] != '/')
            __builtin_trap();
        if (mount_option(mount->super_options, "size", &value) && value.size >= strlen(mount->super_options))
            __builtin_trap();
    }
    (void)shm_owner_find(&mounts, true, true);
    return 0;
}
