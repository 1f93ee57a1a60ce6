/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest checkpoint that can be continued from. After a crash the newest file is often the one that was
 * being written: it is cut short, and a training that loads it dies again, or worse, does not. So what cannot
 * be shown to be whole is passed over for the next older one.
 *
 * A file is taken when nobody has it open for writing (the kernel tells its owner; of other people's files,
 * and where the file system cannot tell, it must have stayed the same for two seconds), when it is not empty,
 * its name is not that of a temporary file, and its own format does not say that something is missing: an
 * archive as torch.save writes it has its directory at the end, a .safetensors file says how long it is.
 *
 * A directory is a checkpoint when all that is in it is whole, at least one file is not empty, and, where it
 * is one of torch.distributed.checkpoint, its .metadata is there, which is written last. It is as new as the
 * newest file in it.
 */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "arena.h"
#include "text.h"

typedef enum CheckpointState {
    CHECKPOINT_WHOLE,
    CHECKPOINT_EMPTY,
    CHECKPOINT_TEMPORARY, /* by its name */
    CHECKPOINT_WRITTEN,   /* somebody is at it */
    CHECKPOINT_CUT,       /* its end is missing */
    CHECKPOINT_UNREADABLE,
} CheckpointState;

typedef struct Checkpoint {
    const char *path; /* as the glob has it */
    struct timespec changed;
    CheckpointState state;
} Checkpoint;

/* What a glob matches: all that was passed over, newest first, and then the one to take, if any. */
typedef struct Checkpoints {
    Checkpoint *items;
    size_t n;
    size_t capacity;
} Checkpoints;

/*
 * As glob(3), with ~ and {a,b}. Looks from the newest to the oldest until one is whole. 0 also when nothing
 * matches; -ENOMEM. May take two seconds.
 */
int checkpoints_find(const char *glob, Arena *arena, Checkpoints *ret);

/* The one to take, or NULL. */
const Checkpoint *checkpoints_whole(const Checkpoints *checkpoints);

/* --- The formats, as far as they tell of a missing end. Pure. --- */

/*
 * `tail` are the last bytes of a zip archive of file_bytes in all, ZIP_TAIL_BYTES of them or the whole file.
 * Gives the place of the archive's directory. -EBADMSG when its end is not there.
 */
enum { ZIP_TAIL_BYTES = 65535 + 22 + 20 + 56 };
int zip_end_parse(Text tail, uint64_t file_bytes, uint64_t *ret_directory);

/* The bytes that follow the header of a .safetensors file, by that header. -EBADMSG when it is none. */
int safetensors_parse(Text header, uint64_t *ret_bytes);
