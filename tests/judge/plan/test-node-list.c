/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "node-list.h"

#define GIB  (UINT64_C(1) << 30)
#define NONE U64_UNKNOWN

static const NodeRoom n1 = {"n1", 1, 64, 256 * GIB, 128 * GIB, 8, 65536, true};

static void test_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        NodeRoom last;
    } cases[] = {
        {"n1,64,256G,128G,8,65536\n", 1, n1},
        {"name,cpus,memory,shm,gpus,open_files\nn1,64,256GiB,131072m,8,65536", 1, n1},
        {"# ours\n\nopen_files , name,cpus,gpus,memory,shm\r\n65536, n1 ,64,8,256g,128g\r\n", 1, n1},
        {"n1\nn2,,-,\n", 2, {"n2", 1, NONE, NONE, NONE, NONE, NONE, true}},
        {"name\nn0,\n", 1, {"n0", 1, NONE, NONE, NONE, NONE, NONE, true}},
        {"{\"name\": \"n1\", \"cpus\": 64, \"memory\": \"256GiB\", \"shm\": 137438953472, \"gpus\": 8, "
         "\"open_files\": \"65536\"}\n",
         1, n1},
        {"{\"name\": \"n0\"}\n\n{\"name\": \"n1\", \"cpus\": null}\n",
         2,
         {"n1", 1, NONE, NONE, NONE, NONE, NONE, true}},
        {"NodeName=n0 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=0 CPUTot=64 CPULoad=0.1\n   "
         "RealMemory=262144 "
         "AllocMem=0\n   Gres=gpu:h100:8(S:0-1)\n   State=IDLE ThreadsPerCore=1\n\nNodeName=n1 CPUTot=2 "
         "RealMemory=1024 Gres=(null) State=DOWN*+DRAIN\n",
         2,
         {"n1", 1, 2, GIB, NONE, 0, NONE, false}},
        {"NodeName=n1 CPUTot=64 RealMemory=262144 Gres=gpu:4,gpu:a100:4 State=MIXED\n",
         1,
         {"n1", 1, 64, 256 * GIB, NONE, 8, NONE, true}},
        {"Thu Nov 19 20:00:00 2026\nNODELIST   NODES PARTITION  STATE CPUS S:C:T MEMORY TMP_DISK WEIGHT "
         "AVAIL_FE REASON\nn1   1  debug*  idle 64 2:32:1 262144 0 1 (null) none\n",
         1,
         {"n1", 1, 64, 256 * GIB, NONE, NONE, NONE, true}},
        {"NODELIST CPUS MEMORY GRES STATE\nn1 64 262144 gpu:8 idle\nn1 64 262144 gpu:8 idle\nn2 8+ 1024+ "
         "(null) drained*\n",
         2,
         {"n2", 1, 8, GIB, NONE, 0, NONE, false}},
        {"PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\ndebug* up infinite 16 mix n[01-16]\n",
         1,
         {"n[01-16]", 16, NONE, NONE, NONE, NONE, NONE, true}},
        {"{\n \"kind\": \"List\", \"items\": [{\"metadata\": {\"name\": \"n1\"}, \"spec\": "
         "{\"unschedulable\": "
         "true}, \"status\": {\"allocatable\": {\"cpu\": \"31850m\", \"memory\": \"1048576Ki\", "
         "\"nvidia.com/gpu\": \"8\"}}}]}",
         1,
         {"n1", 1, 31, GIB, NONE, 8, NONE, false}},
        {"{\"kind\": \"NodeList\", \"items\": [{\"metadata\": {\"name\": \"n1\"}, \"status\": {\"capacity\": "
         "{\"cpu\": \"4\", \"memory\": \"1G\"}}}]}",
         1,
         {"n1", 1, 4, 1000000000, NONE, NONE, NONE, true}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_buffer_ Buffer error = {0};
        NodeList list = {0};
        size_t line = 0;
        int r = node_list_parse(text_of(cases[i].text), &arena, &list, &line, &error);
        if (r < 0)
            fail_msg("case %zu, line %zu: %s", i, line, buffer_text(&error));
        const NodeRoom *wanted = &cases[i].last;
        assert_int_equal(list.n, cases[i].n);
        const NodeRoom *room = &list.items[list.n - 1];
        assert_string_equal(room->name, wanted->name);
        if (room->count != wanted->count || room->cpus != wanted->cpus ||
            room->memory_bytes != wanted->memory_bytes || room->shm_bytes != wanted->shm_bytes ||
            room->gpus != wanted->gpus || room->open_files != wanted->open_files ||
            room->usable != wanted->usable)
            fail_msg("case %zu: %llu cpus, %llu memory, %llu gpus", i, (unsigned long long)room->cpus,
                     (unsigned long long)room->memory_bytes, (unsigned long long)room->gpus);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t line;
        const char *words;
    } cases[] = {
        {"", 0, "no node in it"},
        {"\n# nothing\n", 0, "no node in it"},
        {"name,cores\nn1,1\n", 1, "\"cores\""},
        {"name,cpus,cpus\n", 1, "twice"},
        {"n1,64\nn2,many\n", 2, "cpus takes a whole number, not \"many\""},
        {"n1,0\n", 1, "cpus"},
        {"n1,-1\n", 1, "cpus"},
        {"n1,64,lots\n", 1, "memory takes a size"},
        {"n1,64,1e30\n", 1, "memory takes a size"},
        {"n1,1,1,1,1,1,1\n", 1, "more than 6 columns"},
        {",64\n", 1, "name of a node"},
        {"cpus,name\n64\n", 2, "no name"},
        {"n\x1b[31m,x\n", 1, "name of a node"},
        {"root:x:0:0\n", 1, "name of a node"},
        {"{\"name\": \"n1\"}\n{\"name\": }\n", 2, "this is not JSON"},
        {"{\"name\": \"n1\"}\n[1]\n", 2, "not a JSON object"},
        {"{\"name\": \"n1\", \"cores\": 4}\n", 1, "\"cores\""},
        {"{\"name\": \"n1\", \"cpus\": 1.5}\n", 1, "cpus takes a number"},
        {"{\"name\": 7}\n", 1, "name takes a number or a string"},
        {"{\"cpus\": 7}\n", 1, "no name"},
        {"{\n  \"items\": [\n}\n", 3, "this is not JSON"},
        {"{\"kind\": \"List\"}", 0, "no items"},
        {"{\"kind\": \"List\", \"items\": []}", 0, "no node in it"},
        {"{\"items\": [{}]}", 0, "no name"},
        {"{\"items\": [{\"metadata\": {\"name\": \"n\"}, \"status\": {\"allocatable\": {\"cpu\": \"4 "
         "cores\"}}}]}",
         0, "cpu is \"4 cores\""},
        {"NodeName=n1 CPUTot=x\n", 1, "cpus"},
        {"NodeName=n1\nRealMemory=9999999999999999999\n", 2, "memory"},
        {"NODELIST CPUS\nn1 none\n", 2, "cpus"},
        {"CPUS NODELIST\n64\n", 2, "no name"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        _cleanup_arena_ Arena arena = {0};
        _cleanup_buffer_ Buffer error = {0};
        NodeList list = {0};
        size_t line = 99;
        if (node_list_parse(text_of(cases[i].text), &arena, &list, &line, &error) != -EINVAL)
            fail_msg("case %zu was accepted", i);
        if (line != cases[i].line || !strstr(buffer_text(&error), cases[i].words))
            fail_msg("case %zu, line %zu: %s", i, line, buffer_text(&error));
        assert_null(strpbrk(buffer_text(&error), "\n\x1b"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
