/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <time.h>

#include "plan-nodes.h"

#define MIB  (UINT64_C(1) << 20)
#define GIB  (UINT64_C(1) << 30)
#define NONE U64_UNKNOWN

/* One trainer with 3 workers; batches of 64 MiB, of which 2 x 3 + 1 are in flight. */
static const PlanLoader loader = {
    .batch_bytes = 64 * MIB, .batch = 8, .workers = 3, .prefetch = 2, .held = 1};

static PlanQuestion question_of(uint64_t ranks, uint64_t jobs)
{
    return (PlanQuestion){.loaders = &loader,
                          .n_loaders = 1,
                          .page_bytes = 4096,
                          .ranks = ranks,
                          .jobs = jobs,
                          .per_gpu_last = 1,
                          .margin = 1,
                          .shm_bytes = NONE,
                          .memory_bytes = NONE,
                          .memory_room_bytes = NONE};
}

static NodesPlan nodes_of(const PlanQuestion *question, const NodeList *list, uint64_t process_bytes,
                          Arena *arena)
{
    Plan plan;
    NodesPlan nodes;
    assert_int_equal(plan_make(question, arena, &plan), 0);
    assert_int_equal(plan_nodes_make(question, &plan, list, process_bytes, arena, &nodes), 0);
    return nodes;
}

static void test_limits(void **state)
{
    (void)state;
    /* A job: just above 512 MiB of /dev/shm (8 batches with the one that is handed over), 4 CPUs. */
    static struct {
        NodeRoom room;
        uint64_t ranks;
        uint64_t process_bytes;
        uint64_t jobs;
        NodeLimit limit;
        uint64_t guarded;
        const char *change;
    } cases[] = {
        {{"a", 1, 64, 256 * GIB, 4 * GIB, NONE, NONE, true}, 1, 0, 7, LIMIT_SHM, 16, "for 16 jobs"},
        {{"b", 1, 64, 256 * GIB, 64 * GIB, NONE, NONE, true}, 1, 0, 16, LIMIT_CPUS, 16, "With 2 workers"},
        {{"c", 1, 64, 256 * GIB, 64 * GIB, 8, NONE, true}, 1, 0, 8, LIMIT_GPUS, 8, NULL},
        {{"d", 1, 64, 256 * GIB, 64 * GIB, 8, NONE, true}, 4, 0, 2, LIMIT_GPUS, 2, NULL},
        {{"e", 1, 64, 2 * GIB, 64 * GIB, 8, NONE, true}, 1, 0, 3, LIMIT_MEMORY, 3, "Lower the batch size"},
        {{"f", 1, 64, 64 * GIB, 64 * GIB, 8, NONE, true}, 1, 8 * GIB, 1, LIMIT_MEMORY, 1, "Lower"},
        {{"g", 1, 64, 256 * GIB, 64 * GIB, 8, 64, true}, 1, 0, 0, LIMIT_OPEN_FILES, 0, "ulimit -n"},
        {{"h", 1, 64, 256 * GIB, 64 * GIB, 8, 1024, true}, 1, 0, 8, LIMIT_GPUS, 8, NULL},
        {{"i", 1, 64, 256 * GIB, 64 * GIB, 8, NONE, false}, 1, 0, 0, LIMIT_UNUSABLE, 0, NULL},
        {{"j", 1, NONE, NONE, NONE, NONE, NONE, true}, 1, 0, 0, LIMIT_UNKNOWN, 0, "Nothing is known"},
        {{"k", 1, 2, 256 * GIB, 64 * MIB, NONE, NONE, true}, 1, 0, 0, LIMIT_CPUS, 0, "With 1 worker"},
        {{"l", 1, 1, 256 * GIB, 64 * GIB, NONE, NONE, true}, 1, 0, 0, LIMIT_CPUS, 0, "Lower num_workers"},
        {{"m", 1, 64, 256 * GIB, 64 * MIB, NONE, NONE, true}, 1, 0, 0, LIMIT_SHM, 16, "for 16 jobs"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        NodeList list = {&cases[i].room, 1, 1};
        PlanQuestion question = question_of(cases[i].ranks, 1);
        NodesPlan nodes = nodes_of(&question, &list, cases[i].process_bytes, &arena);
        const NodeGroup *group = &nodes.groups[0];
        if (nodes.jobs != cases[i].jobs || group->fit.limit != cases[i].limit ||
            nodes.guarded_jobs != cases[i].guarded)
            fail_msg("%s: %llu jobs, limited by %s, guarded %llu", cases[i].room.name,
                     (unsigned long long)nodes.jobs, node_limit_name(group->fit.limit),
                     (unsigned long long)nodes.guarded_jobs);
        if (!cases[i].change != !group->change || (group->change && !strstr(group->change, cases[i].change)))
            fail_msg("%s: %s", cases[i].room.name, group->change);
    }
}

static void test_groups(void **state)
{
    (void)state;
    static NodeRoom rooms[] = {{"small", 3, 8, 64 * GIB, 64 * GIB, NONE, NONE, true},
                               {"big-1", 1, 64, 256 * GIB, 64 * GIB, NONE, NONE, true},
                               {"down", 1, 64, 256 * GIB, 64 * GIB, NONE, NONE, false},
                               {"big-2", 1, 64, 256 * GIB, 64 * GIB, NONE, NONE, true}};
    _cleanup_arena_ Arena arena = {0};
    NodeList list = {rooms, ARRAY_SIZE(rooms), ARRAY_SIZE(rooms)};
    PlanQuestion question = question_of(1, 5); /* how many are asked for does not change what one needs */
    NodesPlan nodes = nodes_of(&question, &list, 0, &arena);
    assert_int_equal(nodes.n_groups, 3);
    assert_string_equal(nodes.groups[0].room->name, "big-1");
    assert_int_equal(nodes.groups[0].nodes, 2);
    assert_int_equal(nodes.nodes, 6);
    assert_int_equal(nodes.nodes_used, 5);
    assert_int_equal(nodes.jobs, 2 * 16 + 3 * 2);
    assert_int_equal(nodes.fits[2].jobs, 0);
    assert_int_equal(nodes.fits[3].jobs, 16);
    assert_string_equal(nodes.unknown[0], "gpus");
    assert_string_equal(nodes.unknown[1], "open_files");
    assert_null(nodes.unknown[2]);
}

/* The list of a large cluster, all different: parsed and planned in less than a second of CPU time. */
static void test_ten_thousand(void **state)
{
    (void)state;
    _cleanup_buffer_ Buffer text = {0};
    _cleanup_buffer_ Buffer error = {0};
    _cleanup_arena_ Arena arena = {0};
    NodeList list = {0};
    size_t line = 0;
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(
            buffer_printf(&text, "n%u,%u,%uG,%uM,%u,65536\n", i, 16 + i % 200, 64 + i % 911, 512 + i, i % 9),
            0);
    clock_t before = clock();
    assert_int_equal(node_list_parse(text_of(buffer_text(&text)), &arena, &list, &line, &error), 0);
    PlanQuestion question = question_of(1, 1);
    NodesPlan nodes = nodes_of(&question, &list, 0, &arena);
    double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    assert_int_equal(nodes.nodes, 10000);
    assert_true(nodes.jobs > 1000);
    assert_true(seconds < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_ten_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
