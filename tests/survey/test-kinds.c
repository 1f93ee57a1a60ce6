/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "survey.h"

static void test_kind_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        SegmentBacking backing;
        SegmentKind kind;
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
        {"shmguard", BACKING_SHM, KIND_OTHER},
        {"shmguard:torch_1_2_3", BACKING_MEMFD, KIND_SHMGUARD},
        {"torch_1_2_3", BACKING_MEMFD, KIND_OTHER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(segment_kind(text_of(cases[i].name), cases[i].backing), cases[i].kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kind_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
