/* SPDX-License-Identifier: Apache-2.0 */
#include "show-explain.h"
#include "explain-text.h"
#include "show-fixes.h"

enum { INDENT = 2 };

const char *confidence_words(double confidence)
{
    return confidence >= 0.95  ? CONFIDENCE_CERTAIN
           : confidence >= 0.8 ? CONFIDENCE_VERY_LIKELY
           : confidence >= 0.6 ? CONFIDENCE_LIKELY
           : confidence >= 0.4 ? CONFIDENCE_POSSIBLE
                               : CONFIDENCE_GUESS;
}

static void show_heading(const Terminal *terminal, const char *heading)
{
    fputc('\n', terminal->out);
    terminal_print(terminal, STYLE_BOLD, "%s", heading);
    fputc('\n', terminal->out);
}

static void show_proses(const Terminal *terminal, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fprintf(terminal->out, "%*s- ", INDENT, "");
        terminal_wrap(terminal, INDENT + 2, INDENT + 2, texts[i]);
    }
}

void show_explanation(const Terminal *terminal, const Diagnosis *explanation)
{
    const Cause *cause = &explanation->cause;
    terminal_label(terminal, EXPLAIN_CAUSE);
    terminal_print(terminal, cause->id == CAUSE_OK ? STYLE_GOOD : STYLE_BAD, "%s", cause_name(cause->id));
    fprintf(terminal->out, explanation->detail ? " (%s)\n" : "%s\n",
            explanation->detail ? explanation->detail : "");
    if (cause->id != CAUSE_UNKNOWN) {
        terminal_label(terminal, EXPLAIN_CONFIDENCE);
        fprintf(terminal->out, EXPLAIN_CONFIDENCE_OF, confidence_words(cause->confidence), cause->confidence);
        fputc('\n', terminal->out);
    }
    if (cause->pid > 0) {
        terminal_label(terminal, EXPLAIN_PROCESS);
        fprintf(terminal->out, "pid %d\n", cause->pid);
    }
    fputc('\n', terminal->out);
    terminal_wrap(terminal, 0, 0, cause->summary);

    if (cause->n_evidence > 0) {
        show_heading(terminal, EXPLAIN_WHY);
        show_proses(terminal, cause->evidence, cause->n_evidence);
    }
    if (explanation->n_matched > 0) {
        show_heading(terminal, EXPLAIN_MATCHED);
        for (size_t i = 0; i < explanation->n_matched; i++)
            terminal_verbatim(terminal, INDENT + 2, explanation->matched[i]);
    }
    if (explanation->fixes.n > 0) {
        show_heading(terminal, EXPLAIN_FIXES);
        show_fixes(terminal, INDENT, &explanation->fixes);
    }
    if (explanation->n_notes > 0) {
        show_heading(terminal, EXPLAIN_NOTES);
        show_proses(terminal, explanation->notes, explanation->n_notes);
    }
}
