/* SPDX-License-Identifier: Apache-2.0 */
#include "cause-context.h"
#include "clues-text.h"

enum { EVIDENCE_MAX = 10, NOTES_MAX = 3 };

static const double CONFIDENCE_MOST = 0.99;

const char *cause_keep(CauseContext *context, const char *text)
{
    if (!text)
        context->r = -ENOMEM;
    return text ? text : "";
}

const char *cause_escape(CauseContext *context, Text text)
{
    _cleanup_buffer_ Buffer safe = {0};
    int r = text_escape_prose(text, &safe);
    return cause_keep(context, r < 0 ? NULL : arena_copy(context->arena, buffer_text(&safe), safe.size));
}

const char *cause_frame(CauseContext *context, const Frame *frame)
{
    const char *file = cause_escape(context, text_trim(text_of(frame->file)));
    const char *function = cause_escape(context, text_of(frame->function));
    return function[0] ? cause_printf(context, EXPLAIN_FRAME, file, frame->line, function)
                       : cause_printf(context, EXPLAIN_FRAME_AT, file, frame->line);
}

/* Leaves out what goes beyond `most`. */
static void list_add(CauseContext *context, const char ***items, size_t *n, size_t *capacity, size_t most,
                     const char *text)
{
    if (context->r < 0 || *n >= most)
        return;
    const char **slot = ARENA_PUSH(context->arena, *items, *n, *capacity);
    if (slot)
        *slot = text;
    else
        context->r = -ENOMEM;
}

void diagnosis_set(Diagnosis *diagnosis, CauseId id, double confidence, const char *summary)
{
    diagnosis->cause.id = id;
    diagnosis->cause.confidence = MIN(confidence, CONFIDENCE_MOST);
    diagnosis->cause.summary = summary;
}

void diagnosis_evidence(CauseContext *context, Diagnosis *diagnosis, const char *text)
{
    Cause *cause = &diagnosis->cause;
    list_add(context, &cause->evidence, &cause->n_evidence, &cause->evidence_capacity, EVIDENCE_MAX, text);
}

void diagnosis_match(CauseContext *context, Diagnosis *diagnosis, const char *line)
{
    list_add(context, &diagnosis->matched, &diagnosis->n_matched, &diagnosis->matched_capacity, MATCHED_MAX,
             line);
}

void diagnosis_note(CauseContext *context, Diagnosis *diagnosis, const char *text)
{
    list_add(context, &diagnosis->notes, &diagnosis->n_notes, &diagnosis->notes_capacity, NOTES_MAX, text);
}
