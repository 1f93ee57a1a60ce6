/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel, or the sandbox around us, lets a process do that the guard and the commands make use of.
 * Each is tried. */
#pragma once

#include "sandbox.h"

typedef enum KernelFeature {
    FEATURE_MEMFD,
    FEATURE_OFD_LOCKS,
    FEATURE_PROCMAP_QUERY,
    FEATURE_LEASES,
    FEATURE_USER_NAMESPACES,
    FEATURES,
} KernelFeature;

/* DONT_KNOW: there was nothing to try it with (a file in /dev/shm for leases, /proc for the mappings). */
void features_find(const Root *root, Tristate ret[static FEATURES]);
