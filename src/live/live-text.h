/* SPDX-License-Identifier: Apache-2.0 */
/* What clients of `serve` get as text. */
#pragma once

#define LIVE_HEALTHY   "ok"
#define LIVE_LATE      "The machine has not answered for %.0f s: the last sample is that old."
#define LIVE_NO_SURVEY "The processes cannot be read at the moment: one of them may be waiting in the kernel."
#define LIVE_NO_PAGE                                                                                         \
    "This program was built without the page: node and npm were missing. /metrics and /api/snapshot are "    \
    "there."
