/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "macro.h"
#include "names.h"
#include "text.h"

/* Only the user's own processes choose the names: there is no one to defend the table against. */
static uint64_t name_hash(const char *name)
{
    return text_hash(text_of(name));
}

/* Where the name is, or the empty slot where it belongs. The table has an empty slot. */
static size_t slot_of(const Names *names, const char *name, uint64_t hash)
{
    size_t i = hash & (names->capacity - 1);
    while (names->slots[i].text && (names->slots[i].hash != hash || strcmp(names->slots[i].text, name) != 0))
        i = (i + 1) & (names->capacity - 1);
    return i;
}

static int names_grow(Names *names)
{
    size_t capacity = names->capacity ? names->capacity * 2 : 64;
    Names grown = {calloc(capacity, sizeof(Name)), names->n, capacity};
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].text)
            grown.slots[slot_of(&grown, names->slots[i].text, names->slots[i].hash)] = names->slots[i];
    free(names->slots);
    *names = grown;
    return 0;
}

static void slot_free(Name *slot)
{
    fd_close(slot->fd);
    free(slot->text);
    *slot = (Name){0};
}

void names_free(Names *names)
{
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].text)
            slot_free(&names->slots[i]);
    free(names->slots);
    *names = (Names){0};
}

int names_find(const Names *names, const char *name)
{
    if (names->n == 0)
        return -ENOENT;
    const Name *slot = &names->slots[slot_of(names, name, name_hash(name))];
    return slot->text ? slot->fd : -ENOENT;
}

int names_put(Names *names, const char *name, int fd, bool counted)
{
    if ((names->n + 1) * 4 > names->capacity * 3) {
        int r = names_grow(names);
        if (r < 0)
            return r;
    }
    uint64_t hash = name_hash(name);
    Name *slot = &names->slots[slot_of(names, name, hash)];
    if (slot->text) {
        fd_close(slot->fd);
        slot->fd = fd;
        slot->counted = counted;
        return 0;
    }
    char *text = strdup(name);
    if (!text)
        return -ENOMEM;
    *slot = (Name){text, hash, fd, counted};
    names->n++;
    return 0;
}

int names_remove(Names *names, const char *name)
{
    if (names->n == 0)
        return -ENOENT;
    size_t mask = names->capacity - 1;
    size_t hole = slot_of(names, name, name_hash(name));
    if (!names->slots[hole].text)
        return -ENOENT;
    slot_free(&names->slots[hole]);
    names->n--;
    /* Entries that a collision pushed behind the hole move up, so that no search ends too early. */
    for (size_t i = (hole + 1) & mask; names->slots[i].text; i = (i + 1) & mask) {
        size_t home = names->slots[i].hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            names->slots[hole] = names->slots[i];
            names->slots[i] = (Name){0};
            hole = i;
        }
    }
    return 0;
}
