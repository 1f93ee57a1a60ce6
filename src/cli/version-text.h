/* SPDX-License-Identifier: Apache-2.0 */
/* What --version says below the version: the left column, and whole lines. */
#pragma once

#define VERSION_COMMIT    "commit"
#define VERSION_COMPILER  "built with"
#define VERSION_LIBRARIES "libraries"
#define VERSION_KERNEL    "kernel"
#define VERSION_TORCH     "tested with"

#define VERSION_NOT_KNOWN  "not known"
#define VERSION_NO_HTTP    "no libmicrohttpd: serve has no port"
#define VERSION_NO_LIBRARY "no preload library: run has no guard"

/* What the kernel permits here, and what makes use of it. */
#define FEATURE_NAME_MEMFD           "memfd_create: memory of the guard"
#define FEATURE_NAME_OFD_LOCKS       "open file description locks: recycling of the guard"
#define FEATURE_NAME_PROCMAP_QUERY   "PROCMAP_QUERY (Linux 6.11): mappings are read faster"
#define FEATURE_NAME_LEASES          "leases in /dev/shm: clean can prove that a file is unused"
#define FEATURE_NAME_USER_NAMESPACES "user namespaces: run --shm works without root"
#define FEATURE_YES                  "yes"
#define FEATURE_NO                   "no"
#define FEATURE_UNKNOWN              "?"

#define VERSION_TORCH_TESTED "PyTorch 1.13 and 2.13 by all tests; 2.5, 2.6 and 2.11 by some"
