/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of the job may say about its end (protocol.h). It is untrusted: any bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol.h"

/* Whether a packet of `size` bytes is a testimony whose fields, as its type has them, may be used. Pure. */
bool testimony_is_sane(const Testimony *testimony, size_t size);
