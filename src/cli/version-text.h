/* SPDX-License-Identifier: Apache-2.0 */
/* What --version says below the version: the left column, and whole lines. */
#pragma once

#include "language.h"

#define VERSION_COMMIT    _("commit")
#define VERSION_COMPILER  _("built with")
#define VERSION_LIBRARIES _("libraries")
#define VERSION_KERNEL    _("kernel")
#define VERSION_TORCH     _("tested with")

#define VERSION_NOT_KNOWN  _("not known")
#define VERSION_NO_HTTP    _("no libmicrohttpd: serve has no port")
#define VERSION_NO_LIBRARY _("no preload library: run has no guard")

/* What the kernel permits here, and what makes use of it. */
#define FEATURE_NAME_MEMFD           N_("memfd_create: memory of the guard")
#define FEATURE_NAME_OFD_LOCKS       N_("open file description locks: recycling of the guard")
#define FEATURE_NAME_PROCMAP_QUERY   N_("PROCMAP_QUERY (Linux 6.11): mappings are read faster")
#define FEATURE_NAME_LEASES          N_("leases in /dev/shm: clean can prove that a file is unused")
#define FEATURE_NAME_USER_NAMESPACES N_("user namespaces: run --shm works without root")
#define FEATURE_YES                  N_("yes")
#define FEATURE_NO                   N_("no")
#define FEATURE_UNKNOWN              N_("?")

#define VERSION_TORCH_TESTED _("PyTorch 1.13 and 2.13 by all tests; 2.5, 2.6 and 2.11 by some")
