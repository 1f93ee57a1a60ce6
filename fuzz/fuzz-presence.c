/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "presence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Text environment = {(const char *)data, size};
    (void)absence_of_mapped(environment, "shmguard-1-a");
    (void)absence_of_missing(environment, "/usr/lib/shmguard/libshmguard-preload.so");
    return 0;
}
