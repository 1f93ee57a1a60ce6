#include "fuzz.h"
#include "private-shm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ShmWish wish = {.kind = WISH_OFF};
    if (shm_wish_parse((Text){(const char *)data, size}, &wish) == 0 && wish.kind == WISH_SIZE)
        if (wish.bytes < SHM_WISH_LEAST_BYTES || wish.bytes > INT64_MAX)
            __builtin_trap();
    return 0;
}
