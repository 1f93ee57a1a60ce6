/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "attempts.h"
#include "fuzz.h"

static void line_check(const Buffer *error)
{
    for (size_t i = 0; i < error->size; i++)
        if ((unsigned char)error->data[i] < 0x20 || error->data[i] == 0x7F)
            __builtin_trap();
}

/* The first line is for --degrade, the rest for --resume and a word of the command: values are whole, every
 * glob has its place, and what is refused is refused in one harmless line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_arena_ Arena arena = {0};
    _cleanup_buffer_ Buffer error = {0};
    char *text = arena_copy(&arena, (const char *)data, size);
    if (!text)
        return 0;
    char *rest = text + strcspn(text, "\n");
    if (*rest)
        *rest++ = '\0';

    Knobs knobs = {0};
    if (knobs_add(&knobs, text, &arena, &error) < 0 && (error.size == 0 || knobs.n != 0))
        __builtin_trap();
    line_check(&error);
    for (size_t i = 0; i < knobs.n; i++)
        for (unsigned level = 0; level < 4; level++)
            if (*knob_value(&knobs.items[i], level) == '\0')
                __builtin_trap();
    (void)effective_batch(&knobs, 1);

    Resume resume = {0};
    buffer_clear(&error);
    bool resumes = resume_parse(rest, &arena, &resume, &error) == 0;
    if (!resumes && error.size == 0)
        __builtin_trap();
    line_check(&error);
    const char **found = arena_alloc(&arena, (resume.n_globs + 1) * sizeof *found);
    for (size_t i = 0; i < resume.n_globs; i++)
        found[i] = "found";
    char *command[] = {rest, NULL};
    char **made = NULL;
    char **settings = NULL;
    if (attempt_command(command, &knobs, 1, resumes ? &resume : NULL, found, &arena, &made) < 0 ||
        attempt_settings(&knobs, 1, 2, &arena, &settings) < 0)
        __builtin_trap();
    size_t n = 0;
    while (made[n])
        n++;
    if (n != 1 + resume.n_words || (knobs.n == 0 && strcmp(made[0], rest) != 0))
        __builtin_trap();
    return 0;
}
