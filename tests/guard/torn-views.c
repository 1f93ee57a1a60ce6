/* SPDX-License-Identifier: Apache-2.0 */
#include "torn.h"
#include "views.c"

static void out_of_order(void)
{
    uint16_t first = by_address[0];
    by_address[0] = by_address[1];
    by_address[1] = first;
}

static void overlapping(void)
{
    ordered(0)->size = ordered(1)->address - ordered(0)->address + 1;
}

static void not_in_the_order(void)
{
    n_by_address--;
}

static void not_found_by_inode(void)
{
    *inode_bucket(views[0].inode) = NONE;
}

static void used_without_a_hold(void)
{
    views[0].hold = NULL;
}

static void change_without_an_end(void)
{
    order_change_begin();
}

static void free_and_in_use(void)
{
    free_views = 1;
}

const Tear views_tears[] = {
    {"out of order", out_of_order},
    {"overlapping", overlapping},
    {"not in the order", not_in_the_order},
    {"not found by inode", not_found_by_inode},
    {"used without a hold", used_without_a_hold},
    {"change without an end", change_without_an_end},
    {"free and in use", free_and_in_use},
    {0},
};
