/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel-features.h"
#include "lease.h"
#include "maps.h"

static Tristate tristate_of(bool value)
{
    return value ? YES : NO;
}

static Tristate leases_try(void)
{
    _cleanup_close_ int file = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return DONT_KNOW;
    return tristate_of(lease_take(file) == OPEN_NOWHERE);
}

void features_find(const Root *root, Tristate ret[static FEATURES])
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    _cleanup_close_ int memfd = memfd_create("shmguard-try", MFD_CLOEXEC);
    ret[FEATURE_MEMFD] = tristate_of(memfd >= 0);
    ret[FEATURE_OFD_LOCKS] = memfd < 0 ? DONT_KNOW : tristate_of(fcntl(memfd, F_OFD_SETLK, &lock) == 0);
    int mapped = maps_can_query(root);
    ret[FEATURE_PROCMAP_QUERY] = mapped < 0 ? DONT_KNOW : tristate_of(mapped > 0);
    ret[FEATURE_LEASES] = leases_try();
    ret[FEATURE_USER_NAMESPACES] = tristate_of(user_namespaces_try(root));
}
