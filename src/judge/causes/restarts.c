/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "restarts.h"

/* Programs and modules with torchrun's options. */
static const char *launcher_of(const char *word, const char *before)
{
    static const char *const modules[] = {"torch.distributed.run", "torch.distributed.launch",
                                          "torch.distributed.launcher"};
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    if (strcmp(name, "torchrun") == 0 ||
        (before && strcmp(word, "launch") == 0 && text_ends(text_of(before), "accelerate")))
        return strcmp(name, "torchrun") == 0 ? "torchrun" : "accelerate";
    for (size_t i = 0; before && strcmp(before, "-m") == 0 && i < ARRAY_SIZE(modules); i++)
        if (strcmp(word, modules[i]) == 0)
            return "torchrun";
    return NULL;
}

/* "--max-restarts=3", or the name alone. False: it is another option. */
static bool option_take(const char *word, const char *next, uint64_t *ret)
{
    static const char *const names[] = {"--max-restarts", "--max_restarts"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t n = strlen(names[i]);
        if (strncmp(word, names[i], n) != 0 || (word[n] != '=' && word[n] != '\0'))
            continue;
        return text_u64(text_of(word[n] == '=' ? word + n + 1 : next), 10, ret) == 0;
    }
    return false;
}

/* What follows is the training's own. */
static bool is_script(const char *word)
{
    return text_ends(text_of(word), ".py") || strcmp(word, "-m") == 0 || strcmp(word, "--module") == 0 ||
           strcmp(word, "--") == 0;
}

static const char *command_restarts(char *const *command, const char *environment, uint64_t *ret)
{
    const char *launcher = NULL;
    for (size_t i = 0; command[i]; i++) {
        if (!launcher)
            launcher = launcher_of(command[i], i > 0 ? command[i - 1] : NULL);
        else if (option_take(command[i], command[i + 1], ret))
            return launcher;
        else if (is_script(command[i]))
            break;
    }
    if (launcher && environment && text_u64(text_of(environment), 10, ret) == 0)
        return launcher;
    return NULL;
}

Restarts restarts_judge(char *const *command, const char *environment, const LauncherNames *names)
{
    uint64_t most = 0;
    const char *launcher = command_restarts(command, environment, &most);
    if (launcher && most > 0)
        return (Restarts){RESTARTS_COMMAND, launcher, most, U64_UNKNOWN, U64_UNKNOWN};
    Restarts restarts = {
        .launcher = launcher_name(names->launcher),
        .most = launcher_number(names->restarts_most),
        .rank = launcher_number(names->rank),
        .ranks = launcher_number(names->ranks),
    };
    if (restarts.rank == U64_UNKNOWN || restarts.ranks == U64_UNKNOWN || restarts.ranks < 2)
        return (Restarts){RESTARTS_OURS, "", U64_UNKNOWN, U64_UNKNOWN, U64_UNKNOWN};
    bool told = restarts.most != U64_UNKNOWN && restarts.most > 0;
    restarts.by = told ? RESTARTS_LAUNCHER : RESTARTS_NOBODY;
    return restarts;
}
