/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the recording of a made training, for tests of the real program: make-recording FILE SECONDS
 * INTERVAL WORKERS */
#include <stdio.h>
#include <string.h>

#include "made-job.h"
#include "recording.h"
#include "text.h"
#include "units.h"

static int moment_take(void *context, const Moment *moment)
{
    return recording_add(context, moment);
}

int main(int argc, char **argv)
{
    MadeJob job = {0};
    uint32_t workers = 0;
    if (argc != 5 || duration_parse(text_of(argv[2]), &job.seconds) < 0 ||
        duration_parse(text_of(argv[3]), &job.interval) < 0 || text_u32(text_of(argv[4]), 10, &workers) < 0 ||
        !(job.interval > 0) || workers > 64) {
        fputs("Usage: make-recording FILE SECONDS INTERVAL WORKERS\n", stderr);
        return 64;
    }
    job.workers = workers;
    _cleanup_history_ History head = {0};
    Recording *recording = NULL;
    int r = history_init(&head, MADE_COMMAND, MADE_TRAINER, MADE_BEGAN, job.interval);
    if (r >= 0)
        r = recording_create(argv[1], &head, &recording);
    if (r >= 0)
        r = made_job_play(&job, moment_take, recording);
    recording_close(recording);
    if (r < 0)
        fprintf(stderr, "make-recording: %s: %s\n", argv[1], strerror(-r));
    return r < 0;
}
