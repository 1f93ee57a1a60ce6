/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "actor.h"

void actor_free(Actor *actor)
{
    free(TAKE_PTR(actor->command));
}

bool actor_note_name(Actor *actor, const char *comm, int ppid)
{
    bool renamed = strcmp(actor->comm, comm) != 0;
    if (actor->ppid == ppid && !renamed)
        return false;
    actor->ppid = ppid;
    if (renamed) {
        snprintf(actor->comm, sizeof actor->comm, "%s", comm);
        actor->looks = 0;
    }
    return true;
}

bool actor_note_signals(Actor *actor, uint64_t signals_caught)
{
    bool changed = actor->signals_caught != signals_caught;
    actor->signals_caught = signals_caught;
    return changed;
}

bool actor_note_threads(Actor *actor, const Root *root, uint32_t threads)
{
    bool changed = actor->threads != threads;
    if (!actor->torch || (!changed && !actor->threads_renamed))
        return false;
    actor->threads = threads;
    actor->threads_renamed = changed;
    actor->signs = thread_signs_read(root, actor->pid);
    return true;
}

bool actor_learn(Actor *actor, const Root *root, Buffer *scratch)
{
    if (actor->looks >= YOUNG_LOOKS)
        return false;
    actor->looks++;
    if (command_read(root, actor->pid, actor->comm, scratch) < 0)
        return false;
    if (actor->command && strcmp(actor->command, buffer_text(scratch)) == 0)
        return false;
    char *command = strndup(buffer_text(scratch), scratch->size);
    if (!command)
        return false;
    free(actor->command);
    actor->command = command;
    actor->command_hash = text_hash(text_of(command));
    return true;
}

static bool torch_note(Actor *actor, const Root *root, uint64_t at)
{
    actor->torch = true;
    actor->torch_at = root->live ? at : 0;
    return true;
}

bool actor_inherit_torch(Actor *actor, const Actor *parent, const Root *root, Buffer *scratch)
{
    uint64_t at = parent ? parent->torch_at : 0;
    return !actor->torch && at != 0 && torch_is_at(root, actor->pid, at, scratch) > 0 &&
           torch_note(actor, root, at);
}

bool actor_search_torch(Actor *actor, const Root *root, Buffer *scratch)
{
    uint64_t at = 0;
    return !actor->torch && torch_find(root, actor->pid, scratch, &at) > 0 && torch_note(actor, root, at);
}

/* A worker whose trainer has died looks like a trainer: it stays a worker of that trainer. */
static void role_take(Actor *actor, const Process *process)
{
    if (process->role == ROLE_OTHER || (actor->role == ROLE_WORKER && process->role != ROLE_WORKER))
        return;
    actor->role = process->role;
    actor->start = process->start;
    if (process->job != 0)
        actor->job = process->job;
}

int actors_assign(void *items, size_t n, size_t item_size, Stage *stage)
{
    if (stage->capacity < n) {
        size_t wanted = MAX(n, stage->capacity * 2);
        Process *larger = reallocarray(stage->processes, wanted, sizeof *larger);
        if (!larger)
            return -ENOMEM;
        stage->processes = larger;
        stage->capacity = wanted;
    }
    char *at = items;
    for (size_t i = 0; i < n; i++) {
        const Actor *actor = (const Actor *)(at + i * item_size);
        stage->processes[i] = (Process){
            .pid = actor->pid,
            .ppid = actor->ppid,
            .command = text_of(actor->command),
            .signals_caught = actor->signals_caught,
            .torch = actor->torch,
            .threads = actor->threads,
            .signs = actor->signs,
        };
        memcpy(stage->processes[i].comm, actor->comm, sizeof actor->comm);
    }
    Survey survey = {.processes = stage->processes, .n_processes = n};
    processes_assign_roles(&survey);
    for (size_t i = 0; i < n; i++)
        role_take((Actor *)(at + i * item_size), &stage->processes[i]);
    return 0;
}
