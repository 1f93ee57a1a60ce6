/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "message-text.h"
#include "message.h"
#include "run-text.h"
#include "show-attempt.h"
#include "units.h"

static const char *arrow(const Terminal *terminal)
{
    return terminal->utf8 ? "→" : "->";
}

static void effective_add(const Terminal *terminal, const NextAttempt *next, Buffer *message)
{
    EffectiveBatch before = effective_batch(next->knobs, next->level_before);
    EffectiveBatch now = effective_batch(next->knobs, next->level);
    if (!before.known || !now.known)
        return;
    if (before.samples == now.samples) {
        if (now.accumulated)
            message_add(message, " ", RUN_EFFECTIVE_SAME, now.samples);
    } else if (now.accumulated)
        message_add(message, " ", RUN_EFFECTIVE_OTHER, before.samples, arrow(terminal), now.samples);
    else
        message_add(message, " ", RUN_EFFECTIVE_FACTOR, (double)now.samples / (double)before.samples);
}

static void values_add(const Terminal *terminal, const NextAttempt *next, Buffer *message)
{
    _cleanup_buffer_ Buffer values = {0};
    for (size_t i = 0; i < next->knobs->n; i++) {
        const Knob *knob = &next->knobs->items[i];
        const char *before = knob_value(knob, next->level_before);
        const char *now = knob_value(knob, next->level);
        if (strcmp(before, now) == 0)
            continue;
        message_add(&values, MESSAGE_ITEMS, "%s=", knob->name);
        (void)text_escape(text_of(before), &values);
        (void)buffer_printf(&values, " %s ", arrow(terminal));
        (void)text_escape(text_of(now), &values);
    }
    if (values.size > 0) {
        message_add(message, " ", RUN_ATTEMPT_VALUES, buffer_text(&values));
        effective_add(terminal, next, message);
    } else if (next->level > next->level_before && !knobs_have_less(next->knobs, next->level_before))
        message_add(message, " ", RUN_ATTEMPT_SMALLEST);
    else if (next->knobs->n > 0)
        message_add(message, " ", RUN_ATTEMPT_SAME);
}

static const char *state_words(CheckpointState state)
{
    switch (state) {
    case CHECKPOINT_EMPTY:
        return RUN_SKIPPED_EMPTY;
    case CHECKPOINT_TEMPORARY:
        return RUN_SKIPPED_TEMPORARY;
    case CHECKPOINT_WRITTEN:
        return RUN_SKIPPED_WRITTEN;
    case CHECKPOINT_CUT:
        return RUN_SKIPPED_CUT;
    case CHECKPOINT_UNREADABLE:
    case CHECKPOINT_WHOLE:
        break;
    }
    return RUN_SKIPPED_UNREADABLE;
}

/* The checkpoints that were skipped explain why an older one is used: the first by name, the rest counted. */
static void skipped_add(const Checkpoints *found, size_t n, Buffer *message)
{
    _cleanup_buffer_ Buffer path = {0};
    if (n == 0)
        return;
    (void)text_escape(text_of(found->items[0].path), &path);
    message_add(message, " ", RUN_SKIPPED, buffer_text(&path), state_words(found->items[0].state));
    if (n > 1)
        message_add(message, " ", PLURAL(n - 1, RUN_SKIPPED_MORE_ONE, RUN_SKIPPED_MORE_MANY), n - 1);
}

static void whole_add(const NextAttempt *next, const Checkpoints *found, const Checkpoint *whole,
                      Buffer *message)
{
    _cleanup_buffer_ Buffer path = {0};
    (void)text_escape(text_of(whole->path), &path);
    if (whole->changed.tv_sec < next->run_began.tv_sec)
        message_add(message, " ", RUN_CONTINUES_OLDER, buffer_text(&path),
                    DURATION_TEXT((double)(next->run_began.tv_sec - whole->changed.tv_sec)));
    else
        message_add(message, " ", RUN_CONTINUES, buffer_text(&path));
    skipped_add(found, found->n - 1, message);
}

static void checkpoints_add(const NextAttempt *next, Buffer *message)
{
    /* All of --resume is left out when one of its globs has no checkpoint. */
    for (size_t i = 0; i < next->n_found; i++)
        if (!checkpoints_whole(&next->found[i])) {
            _cleanup_buffer_ Buffer glob = {0};
            (void)text_escape(text_of(next->globs[i]), &glob);
            message_add(message, " ", RUN_BEGINS, buffer_text(&glob));
            skipped_add(&next->found[i], next->found[i].n, message);
            return;
        }
    for (size_t i = 0; i < next->n_found; i++)
        whole_add(next, &next->found[i], checkpoints_whole(&next->found[i]), message);
}

void show_attempt(const Terminal *terminal, const NextAttempt *next)
{
    _cleanup_buffer_ Buffer message = {0};
    message_add(&message, " ", RUN_ATTEMPT, next->attempt, next->of, next->pause_seconds,
                cause_name(next->cause));
    values_add(terminal, next, &message);
    checkpoints_add(next, &message);
    message_print_line(terminal, &message);
}

void show_no_attempt(const Terminal *terminal, const char *why)
{
    _cleanup_buffer_ Buffer message = {0};
    message_add(&message, " ", RUN_NO_ATTEMPT, why);
    message_print_line(terminal, &message);
}
