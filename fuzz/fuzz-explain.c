/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "explain.h"
#include "fuzz.h"

/* Created once: compiling the patterns takes longer than most inputs. */
static Explainer *explainer;

static void explain(const char *text, size_t size, size_t cut, Arena *arena, Diagnosis *ret)
{
    if (explainer_feed(explainer, text, cut) < 0 || explainer_feed(explainer, text + cut, size - cut) < 0 ||
        explainer_finish(explainer, NULL, NULL, arena, ret) < 0)
        __builtin_trap();
}

/* A log that is fed in two pieces, split where its first byte says, gives the same diagnosis as in one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!explainer && !(explainer = explainer_new()))
        __builtin_trap();
    _cleanup_arena_ Arena arena = {0};
    Diagnosis whole;
    Diagnosis pieces;
    explain((const char *)data, size, 0, &arena, &whole);
    explain((const char *)data, size, size == 0 ? 0 : size * data[0] / 256, &arena, &pieces);

    if (whole.cause.id != pieces.cause.id || whole.cause.pid != pieces.cause.pid ||
        strcmp(whole.cause.summary, pieces.cause.summary) != 0 || whole.n_matched != pieces.n_matched ||
        whole.cause.n_evidence != pieces.cause.n_evidence)
        __builtin_trap();
    for (size_t i = 0; i < whole.n_matched; i++)
        if (strcmp(whole.matched[i], pieces.matched[i]) != 0)
            __builtin_trap();
    return 0;
}
