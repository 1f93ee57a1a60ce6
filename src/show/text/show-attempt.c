/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "show-attempt.h"
#include "units.h"

static void quote(Buffer *line, const char *text)
{
    (void)text_escape(text_of(text), line);
}

static void show_line(const Terminal *terminal, const Buffer *line)
{
    terminal_print(terminal, STYLE_BOLD, "shmguard:");
    fprintf(terminal->out, " %s\n", buffer_text(line));
}

static const char *arrow(const Terminal *terminal)
{
    return terminal->utf8 ? "→" : "->";
}

static void effective_add(const Terminal *terminal, const NextAttempt *next, Buffer *line)
{
    EffectiveBatch before = effective_batch(next->knobs, next->level_before);
    EffectiveBatch now = effective_batch(next->knobs, next->level);
    if (!before.known || !now.known)
        return;
    if (before.samples == now.samples) {
        if (now.accumulated)
            (void)buffer_printf(line, " (the effective batch stays %" PRIu64 ")", now.samples);
    } else if (now.accumulated)
        (void)buffer_printf(line, " (the effective batch changes: %" PRIu64 " %s %" PRIu64 ")",
                            before.samples, arrow(terminal), now.samples);
    else
        (void)buffer_printf(
            line, " (the effective batch becomes %.3g times as large; gradients are not accumulated)",
            (double)now.samples / (double)before.samples);
}

static void values_add(const Terminal *terminal, const NextAttempt *next, Buffer *line)
{
    bool any = false;
    for (size_t i = 0; i < next->knobs->n; i++) {
        const Knob *knob = &next->knobs->items[i];
        const char *before = knob_value(knob, next->level_before);
        const char *now = knob_value(knob, next->level);
        if (strcmp(before, now) == 0)
            continue;
        (void)buffer_printf(line, "%s%s=", any ? ", " : "; ", knob->name);
        quote(line, before);
        (void)buffer_printf(line, " %s ", arrow(terminal));
        quote(line, now);
        any = true;
    }
    if (any)
        effective_add(terminal, next, line);
    else if (next->level > next->level_before && !knobs_have_less(next->knobs, next->level_before))
        (void)buffer_append_text(line, "; nothing smaller is left to try");
    else if (next->knobs->n > 0)
        (void)buffer_append_text(line, "; with the same values");
}

/* What was passed over tells why an older one is taken: the first of them in words, the rest in number. */
static void skipped_add(const Checkpoints *found, size_t n, Buffer *line)
{
    if (n == 0)
        return;
    (void)buffer_append_text(line, " (");
    quote(line, found->items[0].path);
    (void)buffer_printf(line, " %s", checkpoint_state_words(found->items[0].state));
    if (n > 1)
        (void)buffer_printf(line, ", %zu more %s incomplete", n - 1, n == 2 ? "is" : "are");
    (void)buffer_append_text(line, ")");
}

static void whole_add(const NextAttempt *next, const Checkpoints *found, const Checkpoint *whole,
                      Buffer *line)
{
    (void)buffer_append_text(line, "; continuing from ");
    quote(line, whole->path);
    skipped_add(found, found->n - 1, line);
    if (whole->changed.tv_sec < next->run_began.tv_sec)
        (void)buffer_printf(line, ", which is %s older than this run",
                            DURATION_TEXT((double)(next->run_began.tv_sec - whole->changed.tv_sec)));
}

static void checkpoints_add(const NextAttempt *next, Buffer *line)
{
    /* One that is missing takes all of --resume with it. */
    for (size_t i = 0; i < next->n_found; i++)
        if (!checkpoints_whole(&next->found[i])) {
            (void)buffer_append_text(line, "; from the beginning, because no complete checkpoint matches ");
            quote(line, next->globs[i]);
            skipped_add(&next->found[i], next->found[i].n, line);
            return;
        }
    for (size_t i = 0; i < next->n_found; i++)
        whole_add(next, &next->found[i], checkpoints_whole(&next->found[i]), line);
}

void show_attempt(const Terminal *terminal, const NextAttempt *next)
{
    _cleanup_buffer_ Buffer line = {0};
    (void)buffer_printf(&line, "attempt %u of %u in %u s: %s", next->attempt, next->of, next->pause_seconds,
                        cause_name(next->cause));
    values_add(terminal, next, &line);
    checkpoints_add(next, &line);
    show_line(terminal, &line);
}

void show_no_attempt(const Terminal *terminal, const char *why)
{
    _cleanup_buffer_ Buffer line = {0};
    (void)buffer_printf(&line, "not tried again: %s", why);
    show_line(terminal, &line);
}
