/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "survey.h"

/*
 * Which program makes files of which names. `clean` removes what it recognises here, so a pattern must be one
 * that no user would choose for a file: '#' stands for one or more digits, '?' for a letter, a digit or '_',
 * '%' for a hexadecimal digit, '*' for anything. The guard's memfds begin with its own name.
 */
static const struct {
    const char *pattern;
    SegmentBacking backing;
    SegmentClass class;
} names[] = {
    {"torch_#_#_#", BACKING_SHM, {KIND_TORCH}}, /* torch_PID_RANDOM_COUNTER */
    {"torch_#_#", BACKING_SHM, {KIND_TORCH}},   /* older */
    {"nccl-??????", BACKING_SHM, {KIND_NCCL}},
    {"psm_%%%%%%%%", BACKING_SHM, {KIND_PYTHON}},   /* multiprocessing.shared_memory */
    {"pym-#-????????", BACKING_SHM, {KIND_PYTHON}}, /* multiprocessing.heap */
    {"shm_allreduce_buffer_*", BACKING_SHM, {KIND_GLOO}},
    {"nvidia_dali_*", BACKING_SHM, {KIND_DALI}},
    {"plasma??????", BACKING_SHM, {KIND_RAY}},
    {"vader_segment.*", BACKING_SHM, {KIND_MPI}},
    {"sm_segment.*", BACKING_SHM, {KIND_MPI}}, /* Open MPI 5 */
    {"ucx_shm_posix_*", BACKING_SHM, {KIND_MPI}},
    {"sem.*", BACKING_SHM, {KIND_SEMAPHORE}},
    {"shmguard*", BACKING_MEMFD, {KIND_SHMGUARD}},

    /* Caches of keys and values, of encoder outputs and of media, and the buffers of ranks on the CPU. */
    {"vllm_offload_*.mmap", BACKING_SHM, {KIND_PYTHON, "vLLM", true}},
    {"vllm_ec_*.mmap", BACKING_SHM, {KIND_PYTHON, "vLLM", true}},
    {"VLLM_OBJECT_STORAGE_SHM_BUFFER*", BACKING_SHM, {KIND_PYTHON, "vLLM", true}},
    {"*-[*]-cpushm_#", BACKING_SHM, {KIND_PYTHON, "vLLM", true}},
    /* Queues between its processes, and the load of each rank. */
    {"sgl_shm_mq_#_%%%%%%%%", BACKING_SHM, {KIND_PYTHON, "SGLang", true}},
    {"sgl_shm_nodecheck_#_%%%%%%%%", BACKING_SHM, {KIND_PYTHON, "SGLang", true}},
    {"sglang_loads_*_%%%%%%%%.shm", BACKING_SHM, {KIND_PYTHON, "SGLang", true}},
    {"deepspeed_allreduce_buffer_#_*", BACKING_SHM, {KIND_GLOO, "SGLang or DeepSpeed", true}},
    /* Media and settings on their way from one of its processes to another, closed meanwhile. */
    {"sgl_shm_mm_#_%%%%%%%%", BACKING_SHM, {KIND_PYTHON, "SGLang", false}},
    {"sglmm-#-#-#", BACKING_SHM, {KIND_PYTHON, "SGLang", false}},
    {"sgldiffusion-array-????????.npy", BACKING_SHM, {KIND_PYTHON, "SGLang", false}},
    {"multi_tokenizer_args_#", BACKING_SHM, {KIND_PYTHON, "SGLang", false}},
    {"lmcache_l1_pool_*", BACKING_SHM, {KIND_PYTHON, "LMCache", true}},
    {"triton_python_backend_shm_region_*", BACKING_SHM, {KIND_PYTHON, "Triton Inference Server", true}},
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
    for (; *pattern; pattern++) {
        if (*pattern == '*') {
            for (; name.size > 0 && !name_matches(name, pattern + 1); name = text_skip(name, 1))
                ;
            return name.size > 0 || name_matches(name, pattern + 1);
        }
        if (name.size == 0 || !char_matches(name.data[0], *pattern))
            return false;
        do
            name = text_skip(name, 1);
        while (*pattern == '#' && name.size > 0 && is_digit(name.data[0]));
    }
    return name.size == 0;
}

SegmentClass segment_class(Text name, SegmentBacking backing)
{
    /* All of them write into /dev/shm itself; a directory of such a name (nccl-tests, plasma-study) is a
     * user's own. */
    if (backing == BACKING_SHM && text_contains(name, "/"))
        return (SegmentClass){.kind = KIND_OTHER};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (names[i].backing == backing && name_matches(name, names[i].pattern))
            return names[i].class;
    return (SegmentClass){.kind = KIND_OTHER};
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
