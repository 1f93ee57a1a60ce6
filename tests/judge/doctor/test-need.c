/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "need.h"

static void test_round_up(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t rounded;
    } cases[] = {
        {0, 0},
        {1, 512 * MIB},
        {512 * MIB, 512 * MIB},
        {512 * MIB + 1, GIB},
        {GIB, GIB},
        {GIB + 1, 2 * GIB},
        {13 * GIB - 5, 13 * GIB},
        {UINT64_MAX - 1, UINT64_MAX / GIB * GIB},
        {UINT64_MAX - GIB, UINT64_MAX / GIB * GIB},
        {U64_UNKNOWN, U64_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(shm_round_up(cases[i].bytes), cases[i].rounded);
}

static void test_arithmetic(void **state)
{
    (void)state;
    assert_int_equal(bytes_add(1, 2), 3);
    assert_int_equal(bytes_add(UINT64_MAX - 1, 1), UINT64_MAX - 1);
    assert_int_equal(bytes_add(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    assert_int_equal(bytes_add(0, UINT64_MAX), UINT64_MAX - 1);
    assert_int_equal(bytes_scale(100, 1.3), 130);
    assert_int_equal(bytes_scale(UINT64_MAX, 1.3), UINT64_MAX - 1);
    assert_int_equal(bytes_scale(UINT64_MAX, 1), UINT64_MAX - 1);
    assert_int_equal(batches_in_flight(0), 1);
    assert_int_equal(batches_in_flight(4), 9);
}

static void test_no_job(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    JobNeed need;
    job_need(&f->survey, 100, &need);
    assert_int_equal(need.trainer, 100);
    assert_int_equal(need.workers, 0);
    assert_int_equal(need.need_bytes, 0);
    fixture_free(f);
}

/* Workers, and the sizes of what each of them made: the first list by worker 101, the second by 102. */
static void test_batch(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t by_first[8];
        uint64_t by_second[8];
        uint64_t batch;
    } cases[] = {
        {"nothing yet", {0}, {0}, 0},
        {"one tensor", {1000}, {0}, 1000},
        {"images and labels, twice", {1000, 64, 1000, 64}, {1000, 64}, 1064},
        {"image and mask, one batch each", {1200, 800}, {1200, 800}, 2000},
        {"lengths that vary", {1000, 64, 1100, 64, 1700, 64}, {900, 64, 1300, 64}, 1764},
        {"two tensors that vary", {1000, 300, 1100, 350}, {0}, 1450},
        {"half as long is another tensor", {1000, 500}, {0}, 1500},
        {"the larger batch decides", {1000}, {9000}, 9000},
        {"more sizes than a table holds do no harm", {1, 2, 4, 8, 16, 32, 64, 128}, {0}, 255},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Fixture *f = fixture_new();
        fixture_job(f, 100, 2);
        uint64_t held = 0;
        for (size_t j = 0; j < 8; j++) {
            if (cases[i].by_first[j])
                fixture_tensor(f, 101, cases[i].by_first[j], j % 2 ? 100 : 101);
            if (cases[i].by_second[j])
                fixture_tensor(f, 102, cases[i].by_second[j], 102);
            held += cases[i].by_first[j] + cases[i].by_second[j];
        }
        JobNeed need;
        job_need(&f->survey, 100, &need);
        assert_int_equal(need.workers, 2);
        assert_int_equal(need.held_bytes, held);
        if (need.batch_bytes != cases[i].batch)
            fail_msg("%s: %llu", cases[i].name, (unsigned long long)need.batch_bytes);
        assert_int_equal(need.need_bytes, MAX(held, cases[i].batch * 5));
        assert_int_equal(need.mount_need_bytes, need.need_bytes);
        fixture_free(f);
    }
}

static void test_what_is_no_batch(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_job(f, 100, 1);
    fixture_tensor(f, 100, 5000, 100); /* the trainer's own: a model in shared memory */
    fixture_segment(f, "nccl-abcdef", KIND_NCCL, 700, 100);
    fixture_segment(f, "sem.x", KIND_SEMAPHORE, 32, 100);
    fixture_tensor(f, 101, 1000, 101);
    fixture_tensor(f, 555, 1000, 555); /* of somebody who is in no job */
    JobNeed need;
    job_need(&f->survey, 100, &need);
    assert_int_equal(need.batch_bytes, 1000);
    assert_int_equal(need.other_bytes, 5732);
    assert_int_equal(need.held_bytes, 6732);
    assert_int_equal(need.need_bytes, 5732 + 3 * 1000);
    fixture_free(f);
}

/* The pid in a name is of the maker's namespace, and a name may be anything. */
static void test_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "torch_7_1_0", "torch_", "torch", "", "torch_x_1", "torch_99999999999999999999", "tor\nch_1"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        Fixture *f = fixture_new();
        fixture_job(f, 100, 1);
        fixture_segment(f, names[i], KIND_TORCH, 1000, 101);
        JobNeed need;
        job_need(&f->survey, 100, &need);
        assert_int_equal(need.batch_bytes, 1000);
        fixture_free(f);
    }
}

static void test_held_twice(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_job(f, 100, 1);
    fixture_job(f, 200, 1);
    Segment *segment = fixture_tensor(f, 100, 4 * GIB, 100); /* one model, two trainers */
    fixture_hold(segment, 101);
    fixture_hold(segment, 200);
    fixture_hold(segment, 99999); /* gone since */
    fixture_tensor(f, 101, GIB, 101);
    JobNeed first;
    JobNeed second;
    job_need(&f->survey, 100, &first);
    job_need(&f->survey, 200, &second);
    assert_int_equal(first.held_bytes, 5 * GIB);
    assert_int_equal(first.shared_bytes, 0);
    assert_int_equal(first.need_bytes, 7 * GIB);
    assert_int_equal(second.held_bytes, 4 * GIB);
    assert_int_equal(second.shared_bytes, 4 * GIB);
    fixture_free(f);
}

/* The file_system strategy: in the queue a tensor has a name, a maker and no holder. */
static void test_in_a_queue(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_job(f, 100, 1);
    fixture_job(f, 200, 1);
    fixture_tensor(f, 101, 1000, 0);
    fixture_tensor(f, 101, 1000, 100);
    fixture_tensor(f, 555, 7000, 0); /* its maker is gone: a leftover, and nobody's need */
    JobNeed need;
    job_need(&f->survey, 100, &need);
    assert_int_equal(need.held_bytes, 2000);
    assert_int_equal(need.need_bytes, 3000);
    job_need(&f->survey, 200, &need);
    assert_int_equal(need.held_bytes, 0);
    fixture_free(f);
}

static void test_guarded_and_elsewhere(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_job(f, 100, 2);
    Segment *segment = fixture_segment(f, "shmguard-1", KIND_SHMGUARD, 100 * MIB, 101);
    segment->backing = BACKING_MEMFD;
    segment->on_mount = false;
    fixture_segment(f, "sem.x", KIND_SEMAPHORE, 32, 100);
    fixture_job(f, 200, 2);
    fixture_tensor(f, 201, 100 * MIB, 201)->on_mount = false;
    JobNeed need;
    job_need(&f->survey, 100, &need);
    assert_true(need.guarded);
    assert_false(need.elsewhere);
    assert_int_equal(need.held_bytes, 100 * MIB + 32);
    assert_int_equal(need.mount_need_bytes, 32);
    job_need(&f->survey, 200, &need);
    assert_false(need.guarded);
    assert_true(need.elsewhere);
    assert_int_equal(need.need_bytes, 500 * MIB);
    assert_int_equal(need.mount_need_bytes, 0);
    fixture_free(f);
}

static void test_huge_and_unknown(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_job(f, 100, 3);
    fixture_tensor(f, 101, UINT64_MAX - 1, 101);
    fixture_tensor(f, 102, UINT64_MAX / 2, 102);
    fixture_tensor(f, 103, U64_UNKNOWN, 103);
    JobNeed need;
    job_need(&f->survey, 100, &need);
    assert_int_equal(need.held_bytes, UINT64_MAX - 1);
    assert_int_equal(need.batch_bytes, UINT64_MAX - 1);
    assert_int_equal(need.need_bytes, UINT64_MAX - 1);
    assert_int_equal(shm_round_up(bytes_scale(need.need_bytes, NEED_MARGIN)), UINT64_MAX / GIB * GIB);
    fixture_free(f);
}

/* More makers and sizes than the tables hold. */
static void test_crowd(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    fixture_job(f, 100, 200);
    for (int i = 1; i <= 200; i++)
        for (uint64_t j = 0; j < 20; j++)
            fixture_tensor(f, 100 + i, UINT64_C(4096) << j, 100 + i);
    JobNeed need;
    job_need(&f->survey, 100, &need);
    assert_int_equal(need.workers, 200);
    assert_int_equal(need.batch_bytes, (UINT64_C(4096) << 20) - 4096);
    fixture_free(f);
}

static void test_recommend(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint64_t least;
        double margin;
        uint64_t recommended;
    } cases[] = {
        {0, 0, 1.3, 0},
        {1, 0, 1.3, 512 * MIB},
        {256 * MIB, 0, 1.3, 512 * MIB},
        {256 * MIB + 1, 0, 1.3, GIB},
        {512 * MIB, 0, 1, 512 * MIB},
        {800 * MIB, 0, 1.3, 2 * GIB},
        {100 * MIB, 3 * GIB, 1.3, 3 * GIB},
        {10 * GIB, 0, 1.3, 13 * GIB},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(shm_recommend(cases[i].bytes, cases[i].least, cases[i].margin),
                         cases[i].recommended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recommend),
        cmocka_unit_test(test_round_up),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_no_job),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_what_is_no_batch),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_held_twice),
        cmocka_unit_test(test_in_a_queue),
        cmocka_unit_test(test_guarded_and_elsewhere),
        cmocka_unit_test(test_huge_and_unknown),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
