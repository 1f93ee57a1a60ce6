#include "pins.c"
#include "torn.h"

static void nobody_waits(void)
{
    n_waiting++;
}

static void nothing_is_open(void)
{
    n_open++;
}

static void bytes_of_no_pin(void)
{
    pinned_bytes = 1;
}

static void registered_nowhere(void)
{
    (void)pin_add((char *)pins, 1);
    pins[0].registered = true;
}

const Tear pins_tears[] = {
    {"one waits of none", nobody_waits},
    {"one is open of none", nothing_is_open},
    {"bytes of no pin", bytes_of_no_pin},
    {"registered without a context", registered_nowhere},
    {0},
};
