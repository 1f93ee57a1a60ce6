/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job-place.h"

static int number_of(const char *name)
{
    uint64_t number = launcher_number(name);
    return number > INT32_MAX ? RANK_UNKNOWN : (int)number;
}

JobPlace job_place_of(const LauncherNames *names)
{
    JobPlace place = {.node_number = number_of(names->node_number), .rank = number_of(names->rank)};
    snprintf(place.job, sizeof place.job, "%s", names->job);
    snprintf(place.node, sizeof place.node, "%s", names->node);
    place.ranks = MAX(number_of(names->ranks), 0);
    place.attempt = number_of(names->restarts) + 1; /* unknown is -1 */
    return place;
}

JobPlace job_place_here(const Root *root)
{
    LauncherNames names = {0};
    (void)launcher_names_read(root, getpid(), &names);
    JobPlace place = job_place_of(&names);
    if (place.node[0] == '\0' && gethostname(place.node, sizeof place.node - 1) < 0)
        place.node[0] = '\0';
    place.node[sizeof place.node - 1] = '\0';
    return place;
}

void job_place_learn(JobPlace *place, const JobPlace *trainer)
{
    if (place->job[0] == '\0')
        memcpy(place->job, trainer->job, sizeof place->job);
    if (place->node_number == RANK_UNKNOWN)
        place->node_number = trainer->node_number;
    if (place->ranks == 0)
        place->ranks = trainer->ranks;
}
