/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "environment.h"
#include "preload.h"
#include "protocol.h"

static const char preload[] = "LD_PRELOAD=";
static const char supervisor[] = PROTOCOL_ENVIRONMENT "=";
static const char inner[] = PROTOCOL_INNER "=";
static const char witness[] = PROTOCOL_ONLY_WITNESS "=1";
static const char pin[] = PROTOCOL_PIN "=";
static const char pin_off[] = PROTOCOL_PIN "=off";
static const char lane[] = PROTOCOL_LANE "=";
static const char lane_off[] = PROTOCOL_LANE "=off";
static const char freeze[] = PROTOCOL_FREEZE "=";
static const char freeze_off[] = PROTOCOL_FREEZE "=off";

bool library_can_be_preloaded(const char *library)
{
    return library[strcspn(library, ": \t\n")] == '\0';
}

static char *preload_make(const char *old, const GuardSettings *settings, Arena *arena)
{
    const char *library = settings->library;
    if (!settings->no_library && preload_holds(old, library))
        return arena_printf(arena, "%s%s", preload, old);
    char *made = arena_alloc(arena, sizeof preload + strlen(old) + strlen(library) + 2);
    if (made && settings->no_library)
        preload_remove(old, library, stpcpy(made, preload));
    else if (made)
        (void)preload_join(old, library, stpcpy(made, preload));
    return made;
}

static size_t strings_count(char *const *strings)
{
    size_t n = 0;
    while (strings[n])
        n++;
    return n;
}

static bool setting_is_in(const char *setting, char *const *settings)
{
    size_t name = strcspn(setting, "=");
    for (; *settings; settings++)
        if (strncmp(*settings, setting, name) == 0 && (*settings)[name] == '=')
            return true;
    return false;
}

int environment_set(char *const *old, char *const *settings, Arena *arena, char ***ret)
{
    char **made = arena_alloc(arena, (strings_count(old) + strings_count(settings) + 1) * sizeof *made);
    if (!made)
        return -ENOMEM;
    size_t n = 0;
    for (; *old; old++)
        if (!setting_is_in(*old, settings))
            made[n++] = *old;
    for (; *settings; settings++)
        made[n++] = *settings;
    *ret = made;
    return 0;
}

static bool is_replaced(const char *setting, const GuardSettings *settings)
{
    return strncmp(setting, supervisor, sizeof supervisor - 1) == 0 ||
           strncmp(setting, inner, sizeof inner - 1) == 0 ||
           strncmp(setting, witness, sizeof witness - 2) == 0 ||
           (settings->no_pin && strncmp(setting, pin, sizeof pin - 1) == 0) ||
           (settings->no_lane && strncmp(setting, lane, sizeof lane - 1) == 0) ||
           (settings->no_freeze && strncmp(setting, freeze, sizeof freeze - 1) == 0);
}

int environment_make(char *const *old, const GuardSettings *settings, Arena *arena, char ***ret)
{
    enum { SETTINGS_MAX = 7 };
    char **made = arena_alloc(arena, (strings_count(old) + SETTINGS_MAX + 1) * sizeof *made);
    if (!made)
        return -ENOMEM;
    const char *preloaded = "";
    size_t m = 0;
    for (; *old; old++)
        if (strncmp(*old, preload, sizeof preload - 1) == 0)
            preloaded = *old + sizeof preload - 1;
        else if (!is_replaced(*old, settings))
            made[m++] = *old;
    size_t before = m;
    made[m++] = preload_make(preloaded, settings, arena);
    made[m++] = arena_printf(arena, "%s%s", supervisor, settings->socket);
    if (settings->inner)
        made[m++] = arena_printf(arena, "%s%s", inner, settings->inner);
    for (size_t i = before; i < m; i++)
        if (!made[i])
            return -ENOMEM;
    if (settings->only_witness)
        made[m++] = (char *)witness;
    if (settings->no_pin)
        made[m++] = (char *)pin_off;
    if (settings->no_lane)
        made[m++] = (char *)lane_off;
    if (settings->no_freeze)
        made[m++] = (char *)freeze_off;
    made[m] = NULL;
    *ret = made;
    return 0;
}
