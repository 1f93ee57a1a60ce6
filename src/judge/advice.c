/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "advice-text.h"
#include "advice.h"
#include "units.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* The options of /dev/shm on every distribution with systemd, except for the size. */
#define SHM_OPTIONS "rw,nosuid,nodev,mode=1777,size="

/* The soft limit to ask for: far above what PyTorch needs, yet low enough that programs which loop over all
 * possible descriptors do not stall, as they do with the 2^30 of some container engines. */
enum { OPEN_FILES_WANTED = 65536 };

/* Four times the kernel's default, which other memory-hungry servers ask for as well. It costs nothing. */
enum { MAX_MAP_COUNT_WANTED = 262144 };

/* A quarter of a million files take about 256 MiB of kernel memory, and only while they exist. */
enum { SHM_INODES_WANTED = 262144 };

#define SWAP_BYTES (8 * GIB)

/* Collects offers. The first error is kept and stops the rest, so that callers need not check each offer. */
typedef struct Offers {
    const Machine *machine;
    Arena *arena;
    Fixes *fixes;
    int error;
} Offers;

const char *fix_needs_name(FixNeeds needs)
{
    switch (needs) {
    case NEEDS_NOTHING:
        return "nothing";
    case NEEDS_ROOT:
        return "root";
    case NEEDS_RESTART:
        return "restart";
    case NEEDS_ADMIN:
        return "admin";
    }
    return "admin";
}

int fix_add(Arena *arena, Fixes *fixes, FixNeeds needs, const char *what, const char *command)
{
    Fix fix = {.needs = needs, .what = arena_copy(arena, what, strlen(what))};
    if (command)
        fix.command = arena_copy(arena, command, strlen(command));
    if (!fix.what || (command && !fix.command))
        return -ENOMEM;
    Fix *slot = ARENA_PUSH(arena, fixes->items, fixes->n, fixes->capacity);
    if (!slot)
        return -ENOMEM;
    *slot = fix;
    return 0;
}

void fixes_rank(Fixes *fixes)
{
    for (size_t i = 1; i < fixes->n; i++) {
        Fix fix = fixes->items[i];
        size_t j = i;
        for (; j > 0 && fixes->items[j - 1].needs > fix.needs; j--)
            fixes->items[j] = fixes->items[j - 1];
        fixes->items[j] = fix;
    }
}

/* `what` may be the result of arena_printf: NULL is -ENOMEM. */
static void offer(Offers *offers, FixNeeds needs, const char *what, const char *command)
{
    if (offers->error == 0)
        offers->error = what ? fix_add(offers->arena, offers->fixes, needs, what, command) : -ENOMEM;
}

/* The command may be the result of arena_printf too. */
static void offer_made(Offers *offers, FixNeeds needs, const char *what, const char *made)
{
    offer(offers, needs, made ? what : NULL, made);
}

const char *shell_quote(Arena *arena, Text word)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
    bool plain = word.size > 0;
    size_t quotes = 0;
    for (size_t i = 0; i < word.size; i++) {
        plain = plain && word.data[i] && strchr(harmless, word.data[i]);
        quotes += word.data[i] == '\'';
    }
    if (plain)
        return arena_copy(arena, word.data, word.size);

    char *quoted = arena_alloc(arena, word.size + 3 * quotes + 3);
    if (!quoted)
        return NULL;
    char *end = quoted;
    *end++ = '\'';
    for (size_t i = 0; i < word.size; i++)
        if (word.data[i] == '\'')
            end = mempcpy(end, "'\\''", 4);
        else
            *end++ = word.data[i];
    *end = '\'';
    return quoted;
}

uint64_t memory_granted_bytes(const Machine *machine)
{
    return MIN(machine->memory.total_bytes, machine->cgroup.memory_limit_bytes); /* unknown is the largest */
}

/* A whole system, with users, sudo and an /etc that is read at boot. */
static bool is_system(const Machine *machine)
{
    return machine->sandbox.kind == ENVIRONMENT_BARE || machine->sandbox.kind == ENVIRONMENT_LXC;
}

bool root_within_reach(const Machine *machine)
{
    const Sandbox *sandbox = &machine->sandbox;
    /* Root of a user namespace on a bare machine has uid 0 but no rights over the machine, and sudo does not
     * help there. In a container, root owns the container's files. */
    if (sandbox->kind == ENVIRONMENT_BARE && !sandbox->initial_userns)
        return false;
    return sandbox->root || (is_system(machine) && !sandbox->slurm && !sandbox->no_new_privs);
}

const char *sudo_prefix(const Machine *machine)
{
    return machine->sandbox.root ? "" : "sudo ";
}

/* What changes to the kernel's settings need: a container can neither make them nor limit them to itself. */
static FixNeeds kernel_needs(const Machine *machine)
{
    bool own = machine->sandbox.kind == ENVIRONMENT_BARE && root_within_reach(machine);
    return own ? NEEDS_ROOT : NEEDS_ADMIN;
}

/* What changes to the files of this system need, whether it is a machine or a system container. */
static FixNeeds system_needs(const Machine *machine)
{
    return root_within_reach(machine) ? NEEDS_ROOT : NEEDS_ADMIN;
}

/* An administrator who pastes the command is not root yet. */
static const char *sudo_of(const Machine *machine, FixNeeds needs)
{
    return needs == NEEDS_ROOT ? sudo_prefix(machine) : "sudo ";
}

int advise_guard(const GuardOffer *guard, Arena *arena, Fixes *fixes)
{
    if (!guard->ready)
        return 0;
    return fix_add(arena, fixes, NEEDS_NOTHING, ADVICE_GUARD, "shmguard run -- python train.py");
}

int advise_smaller_batches(Arena *arena, Fixes *fixes)
{
    return fix_add(arena, fixes, NEEDS_NOTHING, ADVICE_SMALLER_BATCHES, NULL);
}

/* Half of the memory is the kernel's own default for a tmpfs: beyond it the processes have too little memory
 * left to work with the data. */
static uint64_t shm_most_bytes(const Machine *machine)
{
    uint64_t memory = memory_granted_bytes(machine);
    if (memory == U64_UNKNOWN)
        return U64_UNKNOWN;
    uint64_t half = memory / 2;
    uint64_t unit = half >= GIB ? GIB : 64 * MIB;
    return MAX(half / unit * unit, 64 * MIB);
}

/* Kubernetes has its own notation for sizes. */
static char *quantity_text(uint64_t bytes, char buf[static SIZE_TEXT_MAX])
{
    uint64_t mibs = bytes / MIB + (bytes % MIB != 0);
    if (mibs % 1024 == 0)
        snprintf(buf, SIZE_TEXT_MAX, "%lluGi", (unsigned long long)(mibs / 1024));
    else
        snprintf(buf, SIZE_TEXT_MAX, "%lluMi", (unsigned long long)mibs);
    return buf;
}
#define QUANTITY_TEXT(bytes) quantity_text((bytes), (char[SIZE_TEXT_MAX]){0})

/* What mounting or remounting /dev/shm needs. False if it is impossible from here and the container must be
 * restarted. can_remount is about an existing, writable mount; for others the right to mount is enough. */
static bool remount_needs(const Machine *machine, FixNeeds *ret_needs, const char **ret_sudo)
{
    const Sandbox *sandbox = &machine->sandbox;
    bool odd = machine->shm.state != SHM_OK || machine->shm.read_only || !machine->shm.mounted;
    bool at_once = sandbox->can_remount || (odd && sandbox->root && sandbox->sys_admin);
    bool by_sudo = is_system(machine) && !sandbox->root && root_within_reach(machine);
    if (!at_once && !by_sudo && sandbox->kind != ENVIRONMENT_BARE)
        return false;
    *ret_needs = at_once || by_sudo ? NEEDS_ROOT : NEEDS_ADMIN;
    *ret_sudo = at_once ? "" : "sudo ";
    return true;
}

/*
 * mount(8) passes on the options that the kernel shows for a mount. A mount made by a user namespace shows
 * the uid that its owner has outside; that uid does not exist inside, and the kernel refuses it there. If the
 * source is given as well, mount(8) passes nothing on.
 */
static const char *remount_command(Offers *offers, const char *sudo, const char *option)
{
    bool repeat = offers->machine->sandbox.initial_userns || *sudo;
    return option ? arena_printf(offers->arena, "%smount -o remount,%s%s%s /dev/shm", sudo,
                                 repeat ? "" : "nosuid,nodev,", option, repeat ? "" : " tmpfs")
                  : NULL;
}

static const char *fstab_shm(Arena *arena, const char *size)
{
    return arena_printf(arena, "tmpfs /dev/shm tmpfs " SHM_OPTIONS "%s 0 0", size);
}

static void offer_remount(Offers *offers, const char *size)
{
    const Machine *machine = offers->machine;
    FixNeeds system = system_needs(machine);
    FixNeeds needs;
    const char *sudo = NULL;
    if (!remount_needs(machine, &needs, &sudo))
        return;

    if (machine->shm.state == SHM_ABSENT || !machine->shm.mounted)
        offer_made(offers, needs, ADVICE_SHM_MOUNT,
                   arena_printf(offers->arena,
                                "%smkdir -p /dev/shm && %smount -t tmpfs -o " SHM_OPTIONS "%s tmpfs /dev/shm",
                                sudo, sudo, size));
    else
        offer_made(offers, needs, is_system(machine) ? ADVICE_SHM_REMOUNT : ADVICE_SHM_REMOUNT_CONTAINER,
                   remount_command(offers, sudo, arena_printf(offers->arena, "size=%s", size)));

    if (!is_system(machine))
        return;
    const char *line = fstab_shm(offers->arena, size);
    offer_made(offers, MAX(needs, system), ADVICE_SHM_FSTAB,
               line ? arena_printf(offers->arena, "echo '%s' | %stee -a /etc/fstab", line,
                                   system == NEEDS_ROOT ? sudo : "sudo ")
                    : NULL);
}

static const char *kubernetes_shm(Arena *arena, uint64_t bytes)
{
    return arena_printf(arena,
                        "spec:\n"
                        "  containers:\n"
                        "  - name: train # your container\n"
                        "    volumeMounts:\n"
                        "    - name: shm\n"
                        "      mountPath: /dev/shm\n"
                        "  volumes:\n"
                        "  - name: shm\n"
                        "    emptyDir:\n"
                        "      medium: Memory\n"
                        "      sizeLimit: %s",
                        QUANTITY_TEXT(bytes));
}

static const char *compose_shm(Arena *arena, const char *size)
{
    return arena_printf(arena, "services:\n  train: # your service\n    shm_size: %s", size);
}

static void offer_kubernetes_shm(Offers *offers, uint64_t bytes)
{
    offer_made(offers, NEEDS_RESTART, ADVICE_SHM_KUBERNETES, kubernetes_shm(offers->arena, bytes));
}

static void offer_engine_shm(Offers *offers, const char *engine, const char *size)
{
    offer_made(offers, NEEDS_RESTART, ADVICE_SHM_ENGINE,
               arena_printf(offers->arena, "%s run --shm-size=%s IMAGE COMMAND", engine, size));
    offer_made(offers, NEEDS_RESTART, ADVICE_SHM_COMPOSE, compose_shm(offers->arena, size));
}

int shm_flags_make(const Machine *machine, uint64_t bytes, Arena *arena, ShmFlags *ret)
{
    char size[SIZE_TEXT_MAX];
    size_format_flag(bytes, size);
    FixNeeds needs;
    const char *sudo = "sudo ";
    Offers offers = {machine, arena, NULL, 0};
    (void)remount_needs(machine, &needs, &sudo);
    ShmFlags flags = {
        .engine = arena_printf(arena, "--shm-size=%s", size),
        .compose = compose_shm(arena, size),
        .kubernetes = kubernetes_shm(arena, bytes),
        .remount = remount_command(&offers, sudo, arena_printf(arena, "size=%s", size)),
        .fstab = fstab_shm(arena, size),
    };
    if (!flags.engine || !flags.compose || !flags.kubernetes || !flags.remount || !flags.fstab)
        return -ENOMEM;
    *ret = flags;
    return 0;
}

int advise_shm_mount(const Machine *machine, uint64_t bytes, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    const ShmMount *shm = &machine->shm;
    uint64_t target = MIN(bytes, shm_most_bytes(machine));
    bool large = shm->state == SHM_OK && (shm->size_bytes == 0 || target <= shm->size_bytes);
    if (target < bytes)
        offer(&offers, NEEDS_NOTHING,
              arena_printf(arena, ADVICE_SHM_CAPPED, SIZE_TEXT(bytes), SIZE_TEXT(target)), NULL);
    if (large)
        return offers.error;

    char size[SIZE_TEXT_MAX];
    size_format_flag(target, size);
    if (shm->owner != SHM_OF_JOB) /* which has no line in fstab, and is gone with the job */
        offer_remount(&offers, size);

    switch (machine->sandbox.kind) {
    case ENVIRONMENT_DOCKER:
        offer_engine_shm(&offers, "docker", size);
        break;
    case ENVIRONMENT_PODMAN:
        offer_engine_shm(&offers, "podman", size);
        break;
    case ENVIRONMENT_KUBERNETES:
        offer_kubernetes_shm(&offers, target);
        break;
    case ENVIRONMENT_LXC:
        offer_made(&offers, NEEDS_ADMIN, ADVICE_SHM_LXC,
                   arena_printf(arena,
                                "lxc.mount.entry = tmpfs dev/shm tmpfs " SHM_OPTIONS "%s,create=dir 0 0",
                                size));
        break;
    case ENVIRONMENT_UNKNOWN:
        offer_made(&offers, NEEDS_RESTART, ADVICE_SHM_OTHER_ENGINE,
                   arena_printf(arena, "docker run --shm-size=%s IMAGE COMMAND", size));
        break;
    case ENVIRONMENT_BARE:
        /* All jobs of a node share its /dev/shm; this is only worth mentioning if it is in use. */
        if (shm->owner == SHM_OF_JOB)
            offer_made(
                &offers, NEEDS_ADMIN, ADVICE_SHM_SLURM_OWN,
                arena_printf(arena, "nsenter --mount=\"$SLURM_NS\" mount -o remount,size=%s /dev/shm", size));
        else if (machine->sandbox.slurm && shm->used_bytes != U64_UNKNOWN &&
                 shm->used_bytes >= shm->size_bytes / 10)
            offer(&offers, NEEDS_RESTART, ADVICE_SHM_SLURM, "sbatch --exclusive job.sh");
        break;
    }
    return offers.error;
}

int advise_shm_container(const Machine *machine, uint64_t bytes, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    EnvironmentKind kind = machine ? machine->sandbox.kind : ENVIRONMENT_BARE;
    char size[SIZE_TEXT_MAX];
    size_format_flag(bytes, size);
    if (kind != ENVIRONMENT_DOCKER && kind != ENVIRONMENT_PODMAN && kind != ENVIRONMENT_UNKNOWN)
        offer_made(&offers, NEEDS_RESTART, ADVICE_SHM_IF_CONTAINER,
                   arena_printf(arena, "docker run --shm-size=%s IMAGE COMMAND", size));
    if (kind != ENVIRONMENT_KUBERNETES)
        offer_made(&offers, NEEDS_RESTART, ADVICE_SHM_IF_KUBERNETES, kubernetes_shm(arena, bytes));
    return offers.error;
}

int advise_shm_size(const Machine *machine, const GuardOffer *guard, uint64_t bytes, Arena *arena,
                    Fixes *fixes)
{
    int r = advise_guard(guard, arena, fixes);
    if (r < 0)
        return r;
    r = advise_smaller_batches(arena, fixes);
    if (r < 0)
        return r;
    return advise_shm_mount(machine, bytes, arena, fixes);
}

int advise_shm_writable(const Machine *machine, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    FixNeeds needs = system_needs(machine);
    const char *sudo = NULL;
    if (!machine->shm.read_only)
        offer_made(&offers, needs, ADVICE_SHM_PERMISSIONS,
                   arena_printf(arena, "%schmod 1777 /dev/shm", sudo_of(machine, needs)));
    else if (remount_needs(machine, &needs, &sudo))
        offer_made(&offers, needs, ADVICE_SHM_WRITABLE, remount_command(&offers, sudo, "rw"));
    else
        offer(&offers, NEEDS_RESTART, ADVICE_SHM_WRITABLE_CONTAINER, NULL);
    return offers.error;
}

int advise_shm_inodes(const Machine *machine, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    offer(&offers, NEEDS_NOTHING, ADVICE_INODES_FEWER, NULL);
    FixNeeds needs;
    const char *sudo = NULL;
    if (remount_needs(machine, &needs, &sudo)) {
        uint64_t inodes =
            machine->shm.inodes > UINT64_MAX / 2 ? machine->shm.inodes : 2 * machine->shm.inodes;
        offer_made(
            &offers, needs, ADVICE_INODES_REMOUNT,
            remount_command(&offers, sudo,
                            arena_printf(arena, "nr_inodes=%llu",
                                         (unsigned long long)MAX(inodes, (uint64_t)SHM_INODES_WANTED))));
    } else
        offer(&offers, NEEDS_RESTART, ADVICE_INODES_CONTAINER, NULL);
    return offers.error;
}

/* The name of the systemd unit that has the limit. False if the group does not belong to the system manager:
 * the limits of a user's own manager and of container engines are set elsewhere. */
static bool cgroup_unit(const Cgroup *cgroup, Text *ret_unit)
{
    Text path = text_of(cgroup->limited_by);
    Text unit = {0};
    if (text_contains(path, "/user@"))
        return false;
    for (Text part; text_until(&path, '/', &part);)
        unit = part;
    *ret_unit = unit;
    return text_ends(unit, ".slice") || text_ends(unit, ".service") || text_ends(unit, ".scope");
}

static void offer_cgroup_memory(Offers *offers, uint64_t bytes)
{
    const Machine *machine = offers->machine;
    Arena *arena = offers->arena;
    char size[SIZE_TEXT_MAX];
    size_format_flag(bytes, size);
    Text unit;

    if (machine->sandbox.slurm)
        offer_made(offers, NEEDS_RESTART, ADVICE_MEMORY_SLURM,
                   arena_printf(arena, "sbatch --mem=%lluM job.sh", (unsigned long long)(bytes / MIB)));
    switch (machine->sandbox.kind) {
    case ENVIRONMENT_DOCKER:
        offer_made(offers, NEEDS_RESTART, ADVICE_MEMORY_CONTAINER,
                   arena_printf(arena, "docker run --memory=%s IMAGE COMMAND", size));
        offer_made(offers, NEEDS_ADMIN, ADVICE_MEMORY_UPDATE,
                   arena_printf(arena, "docker update --memory=%s --memory-swap=%s CONTAINER", size, size));
        break;
    case ENVIRONMENT_PODMAN:
        offer_made(offers, NEEDS_RESTART, ADVICE_MEMORY_CONTAINER,
                   arena_printf(arena, "podman run --memory=%s IMAGE COMMAND", size));
        break;
    case ENVIRONMENT_KUBERNETES:
        offer_made(offers, NEEDS_RESTART, ADVICE_MEMORY_KUBERNETES,
                   arena_printf(arena,
                                "spec:\n"
                                "  containers:\n"
                                "  - name: train # your container\n"
                                "    resources:\n"
                                "      limits:\n"
                                "        memory: %s",
                                QUANTITY_TEXT(bytes)));
        break;
    case ENVIRONMENT_LXC:
        offer_made(offers, NEEDS_ADMIN, ADVICE_MEMORY_LXC,
                   arena_printf(arena, "lxc config set CONTAINER limits.memory=%lluMiB",
                                (unsigned long long)(bytes / MIB)));
        break;
    case ENVIRONMENT_BARE:
        if (machine->sandbox.slurm || !cgroup_unit(&machine->cgroup, &unit))
            break;
        const char *quoted = shell_quote(arena, unit);
        FixNeeds needs = system_needs(machine);
        offer_made(offers, needs, ADVICE_MEMORY_UNIT,
                   quoted ? arena_printf(arena, "%ssystemctl set-property --runtime %s MemoryMax=%lluM",
                                         sudo_of(machine, needs), quoted, (unsigned long long)(bytes / MIB))
                          : NULL);
        break;
    case ENVIRONMENT_UNKNOWN:
        offer(offers, NEEDS_RESTART, ADVICE_MEMORY_CONTAINER, NULL);
        break;
    }
}

int advise_less_memory(const Machine *machine, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    offer(&offers, NEEDS_NOTHING, ADVICE_FEWER_WORKERS, NULL);

    uint64_t total = machine->memory.total_bytes;
    uint64_t limit = machine->cgroup.memory_limit_bytes;
    if (limit < total) {
        uint64_t wanted = limit > UINT64_MAX / 2 ? limit : 2 * limit;
        uint64_t most = total - total / 10; /* leave some for the rest of the machine */
        wanted = MIN(wanted, most) / MIB * MIB;
        if (wanted > limit)
            offer_cgroup_memory(&offers, wanted);
    } else if (machine->sandbox.slurm)
        offer(&offers, NEEDS_RESTART, ADVICE_MEMORY_SLURM_NODE, "sbatch --exclusive --mem=0 job.sh");
    return offers.error;
}

int advise_swap(const Machine *machine, Arena *arena, Fixes *fixes)
{
    FixNeeds needs = kernel_needs(machine);
    const char *sudo = sudo_of(machine, needs);
    Offers offers = {machine, arena, fixes, 0};
    offer_made(
        &offers, needs, ADVICE_SWAP,
        arena_printf(arena,
                     "%sfallocate -l %lluM /swapfile && %schmod 600 /swapfile && %smkswap /swapfile && "
                     "%sswapon /swapfile",
                     sudo, (unsigned long long)(SWAP_BYTES / MIB), sudo, sudo, sudo));
    return offers.error;
}

int advise_cpus(const Machine *machine, uint32_t cpus, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    if (machine->sandbox.slurm)
        offer_made(&offers, NEEDS_RESTART, ADVICE_CPUS_SLURM,
                   arena_printf(arena, "sbatch --cpus-per-task=%u job.sh", cpus));
    /* Without a quota, or with one as large as the machine, there are no more CPUs. */
    if (machine->cpus_seen > 0)
        cpus = MIN(cpus, machine->cpus_seen);
    if (machine->cgroup.cpu_quota <= 0 || (double)cpus <= machine->cgroup.cpu_quota)
        return offers.error;
    switch (machine->sandbox.kind) {
    case ENVIRONMENT_DOCKER:
        offer_made(&offers, NEEDS_RESTART, ADVICE_CPUS_CONTAINER,
                   arena_printf(arena, "docker run --cpus=%u IMAGE COMMAND", cpus));
        break;
    case ENVIRONMENT_PODMAN:
        offer_made(&offers, NEEDS_RESTART, ADVICE_CPUS_CONTAINER,
                   arena_printf(arena, "podman run --cpus=%u IMAGE COMMAND", cpus));
        break;
    case ENVIRONMENT_KUBERNETES:
        offer_made(&offers, NEEDS_RESTART, ADVICE_CPUS_KUBERNETES,
                   arena_printf(arena,
                                "spec:\n"
                                "  containers:\n"
                                "  - name: train # your container\n"
                                "    resources:\n"
                                "      limits:\n"
                                "        cpu: %u",
                                cpus));
        break;
    case ENVIRONMENT_LXC:
    case ENVIRONMENT_BARE:
    case ENVIRONMENT_UNKNOWN:
        break;
    }
    return offers.error;
}

uint64_t open_files_target(uint64_t soft, uint64_t hard)
{
    uint64_t wanted = soft > UINT64_MAX / 4 ? soft : MAX(4 * soft, (uint64_t)OPEN_FILES_WANTED);
    return MIN(wanted, hard); /* unlimited and unknown are larger than any number */
}

int advise_share_by_name(Arena *arena, Fixes *fixes)
{
    return fix_add(arena, fixes, NEEDS_NOTHING, ADVICE_FILES_BY_NAME,
                   "import torch.multiprocessing; torch.multiprocessing.set_sharing_strategy('file_system')");
}

Freezes python_freezes(unsigned python)
{
    enum { LEAST = 12, MOST = 14 };
    return python == 0 ? FREEZES_UNKNOWN : python < LEAST || python > MOST ? FREEZES_NEVER : FREEZES_MAYBE;
}

int advise_open_files(const Machine *machine, Arena *arena, Fixes *fixes)
{
    int r = advise_file_limit(machine, arena, fixes);
    return r < 0 ? r : advise_share_by_name(arena, fixes);
}

int advise_file_limit(const Machine *machine, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    const RLimits *limits = &machine->limits;
    uint64_t target = open_files_target(limits->open_files_soft, limits->open_files_hard);
    unsigned long long wanted = open_files_target(limits->open_files_soft, U64_UNKNOWN);
    FixNeeds needs = system_needs(machine);

    if (limits->open_files_hard != U64_UNKNOWN && target > limits->open_files_soft)
        offer_made(&offers, NEEDS_NOTHING, ADVICE_FILES_SHELL,
                   arena_printf(arena, "ulimit -n %llu", (unsigned long long)target));
    if (target >= wanted)
        return offers.error;

    switch (machine->sandbox.kind) {
    case ENVIRONMENT_BARE:
    case ENVIRONMENT_LXC:
        offer_made(&offers, needs, ADVICE_FILES_USERS,
                   arena_printf(arena,
                                "printf '* - nofile %llu\\nroot - nofile %llu\\n' | "
                                "%stee /etc/security/limits.d/90-nofile.conf",
                                wanted, wanted, sudo_of(machine, needs)));
        break;
    case ENVIRONMENT_DOCKER:
        offer_made(&offers, NEEDS_RESTART, ADVICE_FILES_CONTAINER,
                   arena_printf(arena, "docker run --ulimit nofile=%llu:%llu IMAGE COMMAND", wanted, wanted));
        break;
    case ENVIRONMENT_PODMAN:
        offer_made(&offers, NEEDS_RESTART, ADVICE_FILES_CONTAINER,
                   arena_printf(arena, "podman run --ulimit nofile=%llu:%llu IMAGE COMMAND", wanted, wanted));
        break;
    case ENVIRONMENT_KUBERNETES:
        offer(&offers, NEEDS_ADMIN, ADVICE_FILES_KUBERNETES, NULL);
        break;
    case ENVIRONMENT_UNKNOWN:
        offer(&offers, NEEDS_RESTART, ADVICE_FILES_OTHER_ENGINE, NULL);
        break;
    }
    return offers.error;
}

int advise_max_map_count(const Machine *machine, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    uint64_t now = machine->max_map_count;
    /* The kernel keeps it in an int. */
    unsigned long long wanted = MAX(MIN(now, (uint64_t)INT32_MAX / 4) * 4, (uint64_t)MAX_MAP_COUNT_WANTED);
    if (now == U64_UNKNOWN)
        wanted = MAX_MAP_COUNT_WANTED;
    FixNeeds needs = kernel_needs(machine);
    const char *sudo = sudo_of(machine, needs);
    bool host = machine->sandbox.kind != ENVIRONMENT_BARE;

    offer(&offers, NEEDS_NOTHING, ADVICE_MAPS_FEWER, NULL);
    offer_made(&offers, needs, host ? ADVICE_MAPS_HOST : ADVICE_MAPS_NOW,
               arena_printf(arena, "%ssysctl -w vm.max_map_count=%llu", sudo, wanted));
    offer_made(&offers, needs, ADVICE_MAPS_KEEP,
               arena_printf(arena,
                            "echo 'vm.max_map_count = %llu' | %stee /etc/sysctl.d/90-max-map-count.conf",
                            wanted, sudo));
    return offers.error;
}

int advise_remove_ipc(const Machine *machine, Arena *arena, Fixes *fixes)
{
    Offers offers = {machine, arena, fixes, 0};
    FixNeeds needs = system_needs(machine);
    const char *sudo = sudo_of(machine, needs);
    /* logind removes the segments of users when their last session ends, but not of users who linger. */
    if (!machine->sandbox.root)
        offer(&offers, NEEDS_NOTHING, ADVICE_LINGER, "loginctl enable-linger");
    offer_made(&offers, needs, ADVICE_REMOVE_IPC,
               arena_printf(arena,
                            "%smkdir -p /etc/systemd/logind.conf.d && printf '[Login]\\nRemoveIPC=no\\n' | "
                            "%stee /etc/systemd/logind.conf.d/90-keep-ipc.conf && "
                            "%ssystemctl kill -s HUP systemd-logind",
                            sudo, sudo, sudo));
    return offers.error;
}
