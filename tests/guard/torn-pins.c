/* SPDX-License-Identifier: Apache-2.0 */
#include "pins.c"
#include "torn.h"

static void waiting_too_high(void)
{
    n_waiting++;
}

static void open_too_high(void)
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
    {"count of waiting pins too high", waiting_too_high},
    {"count of open pins too high", open_too_high},
    {"bytes of no pin", bytes_of_no_pin},
    {"registered without a context", registered_nowhere},
    {0},
};
