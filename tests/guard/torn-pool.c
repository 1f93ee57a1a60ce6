/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.c"
#include "torn.h"

static void one_segment_twice(void)
{
    segments[1].inode = segments[0].inode;
    segments[1].device = segments[0].device;
}

static void count_too_high(void)
{
    n_segments++;
}

static void turn_too_high(void)
{
    segments[0].turn = turns + 1;
}

static void odd_size(void)
{
    segments[0].size++;
}

static void number_too_high(void)
{
    segments[0].issue = segments[0].issue_end + 1;
}

const Tear pool_tears[] = {
    {"one segment twice", one_segment_twice}, {"count too high", count_too_high},
    {"turn too high", turn_too_high},         {"odd size", odd_size},
    {"number too high", number_too_high},     {0},
};
