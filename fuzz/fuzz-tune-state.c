/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "show-tune.h"

/* A file that somebody calls a state: it is taken whole, and then makes sense, or not at all. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const values[] = {"1", "2", "4"};
    char *const command[] = {(char[]){"train"}, (char[]){"{workers}"}, NULL};
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer error = {0};
    TuneAxis axis;
    if (tune_axis_make("workers", values, 3, &arena, &axis) < 0)
        return 0;
    TuneReport report = {.tune = {.axes = &axis, .n_axes = 1, .ceiling_bytes = U64_UNKNOWN, .most = 600},
                         .command = command};
    int r = tune_state_parse((Text){(const char *)data, size}, &report, &arena, &error);
    if (r < 0 && (report.tune.n > 0 || error.size == 0))
        __builtin_trap();
    for (size_t i = 0; i < report.tune.n; i++) {
        const TuneTrial *trial = &report.tune.trials[i];
        if (trial->setting >= 3 || (trial->measured && !(trial->rate > 0)) || trial->cause.id >= CAUSE_IDS)
            __builtin_trap();
    }
    TuneStep step;
    if (tune_next(&report.tune, &step) == 0 && step.setting >= 3)
        __builtin_trap();
    if (tune_verdict(&report.tune).best >= 3)
        __builtin_trap();
    return 0;
}
