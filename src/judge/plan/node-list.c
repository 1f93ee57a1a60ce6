/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "node-list.h"
#include "plan-text.h"
#include "units.h"

enum { COUNT_MOST = 1 << 20, COLUMNS_MOST = 32 };

#define MIB (UINT64_C(1) << 20)

/* Appends what is wrong, and is the error. */
#define REFUSE(error, ...) ((void)buffer_printf((error), __VA_ARGS__), -EINVAL)

static const char *quote(Text text, Buffer *quoted)
{
    enum { QUOTED_MOST = 80 };
    buffer_clear(quoted);
    (void)text_escape((Text){text.data, MIN(text.size, (size_t)QUOTED_MOST)}, quoted);
    return buffer_text(quoted);
}

static const NodeRoom room_unknown = {.count = 1,
                                      .cpus = U64_UNKNOWN,
                                      .memory_bytes = U64_UNKNOWN,
                                      .shm_bytes = U64_UNKNOWN,
                                      .gpus = U64_UNKNOWN,
                                      .open_files = U64_UNKNOWN,
                                      .usable = true};

/* --- Values ----------------------------------------------------------------------------------------------
 */

typedef enum NodeField {
    NODE_NAME,
    NODE_CPUS,
    NODE_MEMORY,
    NODE_SHM,
    NODE_GPUS,
    NODE_OPEN_FILES,
    NODE_FIELDS,
} NodeField;

static const char *const field_names[NODE_FIELDS] = {"name", "cpus", "memory", "shm", "gpus", "open_files"};

static NodeField field_find(Text name)
{
    NodeField field = NODE_NAME;
    while (field < NODE_FIELDS && !text_equal(name, field_names[field]))
        field++;
    return field;
}

static uint64_t *field_of(NodeRoom *room, NodeField field)
{
    uint64_t *const fields[NODE_FIELDS] = {
        NULL, &room->cpus, &room->memory_bytes, &room->shm_bytes, &room->gpus, &room->open_files};
    return fields[field];
}

static int name_take(Text name, NodeRoom *room, Arena *arena, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-[],";
    bool known = name.size > 0 && name.size <= NODE_NAME_MOST;
    for (size_t i = 0; known && i < name.size; i++)
        known = name.data[i] != '\0' && strchr(letters, name.data[i]);
    if (!known)
        return REFUSE(error, NODES_BAD_NAME, quote(name, &quoted), NODE_NAME_MOST);
    room->name = arena_copy(arena, name.data, name.size);
    return room->name ? 0 : -ENOMEM;
}

/* Nothing, or "-": not known. */
static int field_take(NodeField field, Text value, NodeRoom *room, Arena *arena, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    uint64_t number = 0;
    if (field == NODE_NAME)
        return name_take(value, room, arena, error);
    if (value.size == 0 || text_equal(value, "-"))
        return 0;
    bool size = field == NODE_MEMORY || field == NODE_SHM;
    int r = size ? size_parse(value, &number) : text_u64(value, 10, &number);
    if (r < 0 || number > INT64_MAX || (field == NODE_CPUS && (number == 0 || number > COUNT_MOST)) ||
        (field == NODE_GPUS && number > COUNT_MOST))
        return REFUSE(error, size ? NODES_BAD_SIZE : NODES_BAD_COUNT, field_names[field],
                      quote(value, &quoted));
    *field_of(room, field) = number;
    return 0;
}

static int room_add(NodeList *list, const NodeRoom *room, Arena *arena, Buffer *error)
{
    if (list->n == NODES_MOST)
        return REFUSE(error, NODES_TOO_MANY, NODES_MOST);
    NodeRoom *slot = ARENA_PUSH(arena, list->items, list->n, list->capacity);
    if (!slot)
        return -ENOMEM;
    *slot = *room;
    return 0;
}

/* --- CSV ------------------------------------------------------------------------------------------------ */

/* Whether it is a line of names; then *ret_n and columns say in which order. */
static int csv_head(Text line, NodeField *columns, size_t *ret_n, bool *ret_head, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    bool seen[NODE_FIELDS] = {0};
    Text first = line;
    Text cell;
    *ret_n = 0;
    while (text_until(&first, ',', &cell))
        *ret_head |= text_equal(text_trim(cell), field_names[NODE_NAME]);
    for (NodeField field = NODE_NAME; !*ret_head && field < NODE_FIELDS; field++)
        columns[(*ret_n)++] = field;
    while (*ret_head && text_until(&line, ',', &cell)) {
        NodeField field = field_find(text_trim(cell));
        if (field == NODE_FIELDS || seen[field])
            return REFUSE(error, NODES_BAD_COLUMN, quote(text_trim(cell), &quoted));
        seen[field] = true;
        columns[(*ret_n)++] = field;
    }
    return 0;
}

static int csv_row(Text line, const NodeField *columns, size_t n, NodeList *list, Arena *arena, Buffer *error)
{
    NodeRoom room = room_unknown;
    size_t i = 0;
    for (Text cell; text_until(&line, ',', &cell); i++) {
        if (i == n)
            return REFUSE(error, NODES_TOO_WIDE, n);
        int r = field_take(columns[i], text_trim(cell), &room, arena, error);
        if (r < 0)
            return r;
    }
    return room.name ? room_add(list, &room, arena, error) : REFUSE(error, NODES_NO_NAME);
}

static int csv_parse(Text text, Arena *arena, NodeList *list, size_t *line_number, Buffer *error)
{
    NodeField columns[NODE_FIELDS];
    size_t n = 0;
    TEXT_FOR_EACH_LINE (line, text) {
        bool head = false;
        int r = 0;
        ++*line_number;
        line = text_trim(line);
        if (line.size == 0 || line.data[0] == '#')
            continue;
        if (n == 0)
            r = csv_head(line, columns, &n, &head, error);
        if (r >= 0 && !head)
            r = csv_row(line, columns, n, list, arena, error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- JSON ------------------------------------------------------------------------------------------------
 */

static Text text_of_json(const json_t *value)
{
    return (Text){json_string_value(value), json_string_length(value)};
}

static int json_room(json_t *object, NodeRoom *room, Arena *arena, Buffer *error)
{
    const char *key = NULL;
    json_t *value = NULL;
    _cleanup_buffer_ Buffer quoted = {0};
    json_object_foreach(object, key, value)
    {
        NodeField field = field_find(text_of(key));
        char digits[24];
        Text text = {0};
        if (field == NODE_FIELDS)
            return REFUSE(error, NODES_BAD_COLUMN, quote(text_of(key), &quoted));
        if (json_is_null(value))
            continue;
        if (json_is_string(value))
            text = text_of_json(value);
        else if (json_is_integer(value) && json_integer_value(value) >= 0 && field != NODE_NAME) {
            snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
            text = text_of(digits);
        } else
            return REFUSE(error, NODES_BAD_VALUE, field_names[field]);
        int r = field_take(field, text, room, arena, error);
        if (r < 0)
            return r;
    }
    return room->name ? 0 : REFUSE(error, NODES_NO_NAME);
}

static int json_refuse(const json_error_t *wrong, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    return REFUSE(error, NODES_BAD_JSON, quote(text_of(wrong->text), &quoted));
}

static int json_lines_parse(Text text, Arena *arena, NodeList *list, size_t *line_number, Buffer *error)
{
    TEXT_FOR_EACH_LINE (line, text) {
        ++*line_number;
        line = text_trim(line);
        if (line.size == 0)
            continue;
        json_error_t wrong;
        NodeRoom room = room_unknown;
        json_t *object = json_loadb(line.data, line.size, JSON_REJECT_DUPLICATES, &wrong);
        int r = !object                   ? json_refuse(&wrong, error)
                : !json_is_object(object) ? REFUSE(error, NODES_NO_OBJECT)
                                          : json_room(object, &room, arena, error);
        json_decref(object);
        if (r >= 0)
            r = room_add(list, &room, arena, error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- Kubernetes ------------------------------------------------------------------------------------------
 */

/* "31850m", "263856164Ki", "110": rounded down. False: it is not a quantity, or larger than anything real. */
static bool quantity_parse(Text text, uint64_t *ret)
{
    static const struct {
        const char *suffix;
        double worth;
    } units[] = {{"", 1},        {"m", 1e-3},    {"k", 1e3},     {"M", 1e6},
                 {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},
                 {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40},
                 {"Pi", 0x1p50}, {"Ei", 0x1p60}, {"n", 1e-9},    {"u", 1e-6}};
    size_t n = 0;
    while (n < text.size && (text.data[n] == '.' || (text.data[n] >= '0' && text.data[n] <= '9')))
        n++;
    double number = 0;
    Text suffix = text_skip(text, n);
    if (text_decimal((Text){text.data, n}, &number) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (text_equal(suffix, units[i].suffix)) {
            double value = number * units[i].worth;
            *ret = value <= 0x1p62 ? (uint64_t)value : 0;
            return value <= 0x1p62;
        }
    return false;
}

static int quantity_take(const json_t *amounts, const char *name, uint64_t *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    const json_t *amount = json_object_get(amounts, name);
    if (!amount)
        return 0;
    if (!json_is_string(amount) || !quantity_parse(text_of_json(amount), ret))
        return REFUSE(error, NODES_BAD_QUANTITY, name,
                      quote(json_is_string(amount) ? text_of_json(amount) : TEXT("?"), &quoted));
    return 0;
}

/* A pod's /dev/shm is an emptyDir in memory, so its memory is the limit. */
static int kubernetes_node(json_t *item, NodeRoom *room, Arena *arena, Buffer *error)
{
    static const char *const gpus[] = {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"};
    const json_t *name = json_object_get(json_object_get(item, "metadata"), "name");
    const json_t *status = json_object_get(item, "status");
    const json_t *amounts = json_object_get(status, "allocatable");
    if (!amounts)
        amounts = json_object_get(status, "capacity");
    int r = json_is_string(name) ? name_take(text_of_json(name), room, arena, error)
                                 : REFUSE(error, NODES_NO_NAME);
    if (r >= 0)
        r = quantity_take(amounts, "cpu", &room->cpus, error);
    if (r >= 0)
        r = quantity_take(amounts, "memory", &room->memory_bytes, error);
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(gpus); i++) {
        uint64_t there = U64_UNKNOWN;
        r = quantity_take(amounts, gpus[i], &there, error);
        if (there != U64_UNKNOWN)
            room->gpus = room->gpus == U64_UNKNOWN ? there : room->gpus + there;
    }
    room->usable = !json_is_true(json_object_get(json_object_get(item, "spec"), "unschedulable"));
    return r;
}

static int kubernetes_parse(json_t *root, Arena *arena, NodeList *list, Buffer *error)
{
    json_t *items = json_object_get(root, "items");
    size_t i = 0;
    json_t *item = NULL;
    if (!json_is_array(items))
        return REFUSE(error, NODES_NO_ITEMS);
    json_array_foreach(items, i, item)
    {
        NodeRoom room = room_unknown;
        int r = kubernetes_node(item, &room, arena, error);
        if (r >= 0)
            r = room_add(list, &room, arena, error);
        if (r < 0)
            return r;
    }
    return 0;
}

/* One object that spans lines, or has items, is Kubernetes'; else there is an object per line. */
static int json_parse(Text text, Arena *arena, NodeList *list, size_t *line_number, Buffer *error)
{
    json_error_t wrong;
    json_t *root = json_loadb(text.data, text.size, 0, &wrong);
    Text rest = text;
    Text first = {0};
    bool kubernetes = root && (json_object_get(root, "items") || json_object_get(root, "kind"));
    int r = 0;
    if (kubernetes)
        r = kubernetes_parse(root, arena, list, error);
    else if (!root && text_line(&rest, &first) && text_equal(text_trim(first), "{")) {
        *line_number = wrong.line > 0 ? (size_t)wrong.line : 0;
        r = json_refuse(&wrong, error);
    } else
        r = json_lines_parse(text, arena, list, line_number, error);
    json_decref(root);
    return r;
}

/* --- Slurm ------------------------------------------------------------------------------------------------
 */

/* "idle", "MIXED+CLOUD", "DOWN*+DRAIN" */
static bool state_is_usable(Text state)
{
    static const char *const bad[] = {"down",   "drain", "drng",  "fail", "maint",   "power",
                                      "reboot", "unk",   "inval", "err",  "no_resp", "future"};
    _cleanup_buffer_ Buffer lower = {0};
    for (size_t i = 0; i < state.size; i++) {
        char c = state.data[i];
        (void)buffer_printf(&lower, "%c", c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c == '\0' ? '?' : c);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (text_contains((Text){buffer_text(&lower), lower.size}, bad[i]))
            return false;
    return true;
}

/* "gpu:8", "gpu:h100:4(S:0-3),gpu:a100:2": how many. Other kinds of resources count nothing. */
static uint64_t gres_gpus(Text gres)
{
    uint64_t gpus = 0;
    for (Text part; text_until(&gres, ',', &part);) {
        Text plain;
        Text word;
        Text last = {0};
        uint64_t n = 0;
        if (!text_until(&part, '(', &plain) || !text_starts(plain, "gpu"))
            continue;
        while (text_until(&plain, ':', &word))
            last = word;
        gpus += text_u64(last, 10, &n) < 0 ? 1 : MIN(n, (uint64_t)COUNT_MOST);
    }
    return gpus;
}

/* Slurm counts memory in MiB; "+" follows where nodes differ. */
static int slurm_mib(Text value, uint64_t *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    uint64_t mib = 0;
    Text digits = text_digits(value);
    if (digits.size == 0 || text_u64(digits, 10, &mib) < 0 || mib > INT64_MAX / MIB)
        return REFUSE(error, NODES_BAD_SIZE, "memory", quote(value, &quoted));
    *ret = mib * MIB;
    return 0;
}

static int slurm_cpus(Text value, uint64_t *ret, Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    Text digits = text_digits(value);
    if (digits.size == 0 || text_u64(digits, 10, ret) < 0 || *ret == 0 || *ret > COUNT_MOST)
        return REFUSE(error, NODES_BAD_COUNT, "cpus", quote(value, &quoted));
    return 0;
}

static int scontrol_word(Text key, Text value, NodeRoom *room, Buffer *error)
{
    if (text_equal(key, "CPUTot"))
        return slurm_cpus(value, &room->cpus, error);
    if (text_equal(key, "RealMemory"))
        return slurm_mib(value, &room->memory_bytes, error);
    if (text_equal(key, "Gres"))
        room->gpus = gres_gpus(value);
    else if (text_equal(key, "State"))
        room->usable = state_is_usable(value);
    return 0;
}

static int scontrol_parse(Text text, Arena *arena, NodeList *list, size_t *line_number, Buffer *error)
{
    NodeRoom room = room_unknown;
    int r = 0;
    TEXT_FOR_EACH_LINE (line, text) {
        ++*line_number;
        for (Text word; r >= 0 && text_word(&line, &word);) {
            Text key;
            if (!text_until(&word, '=', &key))
                continue;
            if (!text_equal(key, "NodeName")) {
                r = scontrol_word(key, word, &room, error);
                continue;
            }
            if (room.name)
                r = room_add(list, &room, arena, error);
            room = room_unknown;
            if (r >= 0)
                r = name_take(word, &room, arena, error);
        }
        if (r < 0)
            return r;
    }
    return room.name ? room_add(list, &room, arena, error) : 0;
}

typedef enum SinfoColumn {
    SINFO_OTHER,
    SINFO_NAME,
    SINFO_NODES,
    SINFO_STATE,
    SINFO_CPUS,
    SINFO_MEMORY,
    SINFO_GRES,
} SinfoColumn;

static SinfoColumn sinfo_column(Text head)
{
    static const struct {
        const char *head;
        SinfoColumn column;
    } columns[] = {{"NODELIST", SINFO_NAME}, {"HOSTNAMES", SINFO_NAME}, {"NODES", SINFO_NODES},
                   {"STATE", SINFO_STATE},   {"CPUS", SINFO_CPUS},      {"MEMORY", SINFO_MEMORY},
                   {"GRES", SINFO_GRES}};
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        if (text_equal(head, columns[i].head))
            return columns[i].column;
    return SINFO_OTHER;
}

static int sinfo_row(Text line, const SinfoColumn *columns, size_t n, NodeRoom *room, Arena *arena,
                     Buffer *error)
{
    _cleanup_buffer_ Buffer quoted = {0};
    int r = 0;
    size_t i = 0;
    for (Text word; r >= 0 && i < n && text_word(&line, &word); i++)
        switch (columns[i]) {
        case SINFO_NAME:
            r = name_take(word, room, arena, error);
            break;
        case SINFO_NODES:
            if (text_u64(word, 10, &room->count) < 0 || room->count > COUNT_MOST)
                r = REFUSE(error, NODES_BAD_COUNT, "NODES", quote(word, &quoted));
            break;
        case SINFO_STATE:
            room->usable = state_is_usable(word);
            break;
        case SINFO_CPUS:
            r = slurm_cpus(word, &room->cpus, error);
            break;
        case SINFO_MEMORY:
            r = slurm_mib(word, &room->memory_bytes, error);
            break;
        case SINFO_GRES:
            room->gpus = gres_gpus(word);
            break;
        case SINFO_OTHER:
            break;
        }
    return r < 0 ? r : room->name ? 0 : REFUSE(error, NODES_NO_NAME);
}

static int name_compare(const void *a, const void *b)
{
    const NodeRoom *x = *(NodeRoom *const *)a;
    const NodeRoom *y = *(NodeRoom *const *)b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* sinfo -N has a line for each partition that a node is in. */
static int same_drop(NodeList *list, Arena *arena)
{
    NodeRoom **sorted = arena_alloc(arena, MAX(list->n, (size_t)1) * sizeof(NodeRoom *));
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++)
        sorted[i] = &list->items[i];
    if (list->n > 1)
        qsort(sorted, list->n, sizeof(NodeRoom *), name_compare);
    for (size_t i = list->n; i-- > 1;)
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0)
            sorted[i]->count = 0;
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].count > 0)
            list->items[kept++] = list->items[i];
    list->n = kept;
    return 0;
}

static int sinfo_parse(Text text, Arena *arena, NodeList *list, size_t *line_number, Buffer *error)
{
    SinfoColumn columns[COLUMNS_MOST];
    size_t n = 0;
    TEXT_FOR_EACH_LINE (line, text) {
        NodeRoom room = room_unknown;
        ++*line_number;
        Text word;
        Text rest = line;
        if (!text_word(&rest, &word))
            continue;
        bool head = n == 0 && text_contains(line, "NODELIST") | text_contains(line, "HOSTNAMES");
        if (head)
            for (rest = line; n < COLUMNS_MOST && text_word(&rest, &word);)
                columns[n++] = sinfo_column(word);
        if (head || n == 0) /* sinfo -l begins with the date */
            continue;
        int r = sinfo_row(line, columns, n, &room, arena, error);
        if (r >= 0)
            r = room_add(list, &room, arena, error);
        if (r < 0)
            return r;
    }
    return same_drop(list, arena);
}

/* --- All of them ------------------------------------------------------------------------------------------
 */

int node_list_parse(Text text, Arena *arena, NodeList *ret, size_t *ret_line, Buffer *error)
{
    enum { HEAD_BYTES = 4096 };
    Text head = text_trim((Text){text.data, MIN(text.size, (size_t)HEAD_BYTES)});
    NodeList list = {0};
    *ret_line = 0;
    int r = text_starts(head, "{")           ? json_parse(text, arena, &list, ret_line, error)
            : text_starts(head, "NodeName=") ? scontrol_parse(text, arena, &list, ret_line, error)
            : text_contains(head, "NODELIST") || text_contains(head, "HOSTNAMES")
                ? sinfo_parse(text, arena, &list, ret_line, error)
                : csv_parse(text, arena, &list, ret_line, error);
    if (r >= 0 && list.n == 0) {
        *ret_line = 0;
        r = REFUSE(error, NODES_NONE);
    }
    if (r >= 0)
        *ret = list;
    return r;
}
