/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "survey.h"

static void test_kind_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        SegmentBacking backing;
        SegmentKind kind;
        const char *origin;
        bool kept_open;
    } cases[] = {
        {"torch_12902_3312048626_4", BACKING_SHM, KIND_TORCH},
        {"torch_12902_4", BACKING_SHM, KIND_TORCH},
        {"torch_cache", BACKING_SHM, KIND_OTHER},
        {"torch_", BACKING_SHM, KIND_OTHER},
        {"torch_2024_dataset.pt", BACKING_SHM, KIND_OTHER},
        {"torch_1_2_3.bak", BACKING_SHM, KIND_OTHER},
        {"nccl-notes.txt", BACKING_SHM, KIND_OTHER},
        {"nccl-tests", BACKING_SHM, KIND_OTHER},
        {"psm_report.csv", BACKING_SHM, KIND_OTHER},
        {"psm_1a2b3c4d5", BACKING_SHM, KIND_OTHER},
        {"plasma_simulation.npy", BACKING_SHM, KIND_OTHER},
        {"torch_12", BACKING_SHM, KIND_OTHER},
        {"my_torch_1_2", BACKING_SHM, KIND_OTHER},
        {"nccl-AbC123", BACKING_SHM, KIND_NCCL},
        {"psm_1a2b3c4d", BACKING_SHM, KIND_PYTHON},
        {"pym-77-ab_c12xy", BACKING_SHM, KIND_PYTHON},
        {"sem.mp-1xxmdphe", BACKING_SHM, KIND_SEMAPHORE},
        {"shm_allreduce_buffer_0", BACKING_SHM, KIND_GLOO},
        {"nvidia_dali_7", BACKING_SHM, KIND_DALI},
        {"plasmaXYZ123", BACKING_SHM, KIND_RAY},
        {"vader_segment.node.1000.1", BACKING_SHM, KIND_MPI},
        {"000000_locals", BACKING_SHM, KIND_OTHER},
        {"nccl-tests/input.bin", BACKING_SHM, KIND_OTHER},
        {"sem.d/notes", BACKING_SHM, KIND_OTHER},
        {"torch_1_2/3", BACKING_SHM, KIND_OTHER},
        {"", BACKING_SHM, KIND_OTHER},
        {"vllm_offload_5e0c7a52-41c1-4a41-9d0b-6c1f5e0f7a11.mmap", BACKING_SHM, KIND_PYTHON, "vLLM", true},
        {"vllm_offload_node7_dp1.mmap", BACKING_SHM, KIND_PYTHON, "vLLM", true},
        {"vllm_offload_notes.txt", BACKING_SHM, KIND_OTHER},
        {"vllm_offload_a.mmap.bak", BACKING_SHM, KIND_OTHER},
        {"vllm_ec_5e0c7a52.mmap", BACKING_SHM, KIND_PYTHON, "vLLM", true},
        {"VLLM_OBJECT_STORAGE_SHM_BUFFER", BACKING_SHM, KIND_PYTHON, "vLLM", true},
        {"VLLM_OBJECT_STORAGE_SHM_BUFFER_0f0e0d0c0b0a09080706050403020100", BACKING_SHM, KIND_PYTHON, "vLLM",
         true},
        {"29500-tp:0-[0-1]-cpushm_1", BACKING_SHM, KIND_PYTHON, "vLLM", true},
        {"my-cpushm_1", BACKING_SHM, KIND_OTHER},
        {"sgl_shm_mq_4242_0a1b2c3d", BACKING_SHM, KIND_PYTHON, "SGLang", true},
        {"sgl_shm_nodecheck_7_0a1b2c3d", BACKING_SHM, KIND_PYTHON, "SGLang", true},
        {"sglang_loads_ipc-7_x.sock_0a1b2c3d.shm", BACKING_SHM, KIND_PYTHON, "SGLang", true},
        {"sglang_loads_0a1b2c3d.shm", BACKING_SHM, KIND_OTHER},
        {"sgl_shm_mm_4242_0a1b2c3d", BACKING_SHM, KIND_PYTHON, "SGLang", false},
        {"sgl_shm_mm_4242_0a1b2c3d5", BACKING_SHM, KIND_OTHER},
        {"sgl_shm_mm_notes", BACKING_SHM, KIND_OTHER},
        {"sglmm-4242-17-0", BACKING_SHM, KIND_PYTHON, "SGLang", false},
        {"sgldiffusion-array-ab_c12xy.npy", BACKING_SHM, KIND_PYTHON, "SGLang", false},
        {"multi_tokenizer_args_4242", BACKING_SHM, KIND_PYTHON, "SGLang", false},
        {"deepspeed_allreduce_buffer_1000_127.0.0.1_29500_0", BACKING_SHM, KIND_GLOO, "SGLang or DeepSpeed",
         true},
        {"lmcache_l1_pool_4242", BACKING_SHM, KIND_PYTHON, "LMCache", true},
        {"triton_python_backend_shm_region_3", BACKING_SHM, KIND_PYTHON, "Triton Inference Server", true},
        {"ucx_shm_posix_7f3a9c", BACKING_SHM, KIND_MPI},
        {"vllm_offload_a.mmap", BACKING_MEMFD, KIND_OTHER},
        {"run/sgl_shm_mq_1_0a1b2c3d", BACKING_SHM, KIND_OTHER},
        {"shmguard", BACKING_SHM, KIND_OTHER},
        {"shmguard:torch_1_2_3", BACKING_MEMFD, KIND_SHMGUARD},
        {"torch_1_2_3", BACKING_MEMFD, KIND_OTHER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        SegmentClass class = segment_class(text_of(cases[i].name), cases[i].backing);
        const char *origin = cases[i].origin ? cases[i].origin : "";
        if (class.kind != cases[i].kind || class.kept_open != cases[i].kept_open ||
            strcmp(class.origin ? class.origin : "", origin) != 0)
            fail_msg("%s: %s, %s", cases[i].name, segment_kind_name(class.kind), class.origin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kind_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
