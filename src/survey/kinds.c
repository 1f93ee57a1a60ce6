/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "survey.h"

/*
 * Which library makes files of which names. `clean` removes what it recognises here, so a pattern must be one
 * that no user would choose for a file: '#' stands for one or more digits, '?' for a letter, a digit or '_',
 * '%' for a hexadecimal digit, '*' at the end for anything. The guard's memfds begin with its own name.
 */
static const struct {
    const char *pattern;
    SegmentKind kind;
    SegmentBacking backing;
} names[] = {
    {"torch_#_#_#", KIND_TORCH, BACKING_SHM}, /* torch_PID_RANDOM_COUNTER */
    {"torch_#_#", KIND_TORCH, BACKING_SHM},   /* older */
    {"nccl-??????", KIND_NCCL, BACKING_SHM},
    {"psm_%%%%%%%%", KIND_PYTHON, BACKING_SHM},   /* multiprocessing.shared_memory */
    {"pym-#-????????", KIND_PYTHON, BACKING_SHM}, /* multiprocessing.heap */
    {"shm_allreduce_buffer_*", KIND_GLOO, BACKING_SHM},
    {"nvidia_dali_*", KIND_DALI, BACKING_SHM},
    {"plasma??????", KIND_RAY, BACKING_SHM},
    {"vader_segment.*", KIND_MPI, BACKING_SHM},
    {"sm_segment.*", KIND_MPI, BACKING_SHM}, /* Open MPI 5 */
    {"sem.*", KIND_SEMAPHORE, BACKING_SHM},
    {"shmguard*", KIND_SHMGUARD, BACKING_MEMFD},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool char_matches(char c, char pattern)
{
    return pattern == '?'   ? is_word(c)
           : pattern == '%' ? is_hex(c)
           : pattern == '#' ? is_digit(c)
                            : c == pattern;
}

static bool name_matches(Text name, const char *pattern)
{
    size_t i = 0;
    for (; *pattern; pattern++) {
        if (*pattern == '*')
            return true;
        if (i == name.size || !char_matches(name.data[i++], *pattern))
            return false;
        while (*pattern == '#' && i < name.size && is_digit(name.data[i]))
            i++;
    }
    return i == name.size;
}

SegmentKind segment_kind(Text name, SegmentBacking backing)
{
    /* All of them write into /dev/shm itself; a directory of such a name (nccl-tests, plasma-study) is a
     * user's own. */
    if (backing == BACKING_SHM && text_contains(name, "/"))
        return KIND_OTHER;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].backing == backing && name_matches(name, names[i].pattern))
            return names[i].kind;
    return KIND_OTHER;
}

const char *segment_kind_name(SegmentKind kind)
{
    static const char *const kinds[SEGMENT_KINDS] = {
        [KIND_OTHER] = "other",       [KIND_TORCH] = "torch", [KIND_NCCL] = "nccl",
        [KIND_PYTHON] = "python",     [KIND_GLOO] = "gloo",   [KIND_DALI] = "dali",
        [KIND_RAY] = "ray",           [KIND_MPI] = "mpi",     [KIND_SEMAPHORE] = "semaphore",
        [KIND_SHMGUARD] = "shmguard",
    };
    return kinds[kind];
}

const char *role_name(Role role)
{
    static const char *const roles[] = {[ROLE_OTHER] = "other",
                                        [ROLE_TRAINER] = "trainer",
                                        [ROLE_WORKER] = "worker",
                                        [ROLE_MANAGER] = "manager"};
    return roles[role];
}

const char *start_method_name(StartMethod start)
{
    static const char *const methods[] = {[START_UNKNOWN] = "unknown",
                                          [START_FORK] = "fork",
                                          [START_SPAWN] = "spawn",
                                          [START_FORKSERVER] = "forkserver"};
    return methods[start];
}
