/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the newest checkpoint to continue from. After a crash, the newest file is often the one that was
 * being written: it is truncated, and a training that loads it dies again, or worse, does not. So a
 * checkpoint that cannot be shown to be complete is passed over for the next older one.
 *
 * A file is accepted if no process has it open for writing (the kernel tells its owner; other users' files,
 * and files on file systems that cannot tell, must have stayed unchanged for two seconds), if it is not
 * empty, if its name is not that of a temporary file, and if its own format does not show that something is
 * missing: an archive written by torch.save has its directory at the end, a .safetensors file states its
 * length.
 *
 * A directory is a checkpoint if everything in it is complete, at least one file is not empty, and, for
 * torch.distributed.checkpoint, its .metadata exists, which is written last. It is as new as its newest file.
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
    CHECKPOINT_WRITTEN,   /* a process is writing to it */
    CHECKPOINT_CUT,       /* its end is missing */
    CHECKPOINT_UNREADABLE,
} CheckpointState;

typedef struct Checkpoint {
    const char *path; /* as the glob has it */
    struct timespec changed;
    CheckpointState state;
} Checkpoint;

/* What a glob matches: all that were passed over, newest first, and then the one to use, if any. */
typedef struct Checkpoints {
    Checkpoint *items;
    size_t n;
    size_t capacity;
} Checkpoints;

/*
 * As glob(3), with ~ and {a,b}. Examines the newest first, until one is complete. 0 also when nothing
 * matches; -ENOMEM. May take two seconds.
 */
int checkpoints_find(const char *glob, Arena *arena, Checkpoints *ret);

/* The one to use, or NULL. */
const Checkpoint *checkpoints_whole(const Checkpoints *checkpoints);

/* --- The formats, as far as they tell of a missing end. Pure. --- */

/*
 * `tail` is the end of a zip archive of file_bytes in all: its last ZIP_TAIL_BYTES, or the whole file. Gives
 * the place of the archive's directory. -EBADMSG: the end record is missing.
 */
enum { ZIP_TAIL_BYTES = 65535 + 22 + 20 + 56 };
int zip_end_parse(Text tail, uint64_t file_bytes, uint64_t *ret_directory);

/* The number of bytes that follow the header of a .safetensors file, according to that header. -EBADMSG: it
 * is not one. */
int safetensors_parse(Text header, uint64_t *ret_bytes);
