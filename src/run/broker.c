/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "admission.h"
#include "broker.h"
#include "clock.h"
#include "janitor.h"
#include "macro.h"
#include "names.h"
#include "protocol.h"
#include "shared-stats.h"
#include "source.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/*
 * COUNT_SECONDS and COUNT_SHARE: while memory comes and goes all the time, the shortest time between two
 * counts of bytes, and the largest share of our time that counting may take: with tens of thousands of names
 * it takes milliseconds.
 *
 * PACKETS_MAX: packets of one client that are read in a row. That is more than a client's queue can hold (its
 * send buffer limits it to some hundred packets), so reading that many reads all that was there at the start.
 */
enum { PACKETS_MAX = 4096, COUNT_SHARE = 50, RIGHTS_MAX = 8 };
static const double COUNT_SECONDS = 0.05;

typedef struct Connection {
    Source source;
    struct Connection *next;
    Broker *broker;
    uint64_t serial;
    int pid;
    uid_t uid;
    bool only_speaks;  /* it has ended, and can only have left a testimony */
    Message asked;     /* while waiting */
    bool waiting;      /* for all queues to be read */
    uint64_t asked_in; /* the pass over all queues that was running, or had last run, when it asked */
    bool gone;         /* closed; its memory is freed when no event can point to it any more */
} Connection;

struct Broker {
    Source listener;
    int epoll;
    int shm;   /* directory */
    int spare; /* closed to accept one more client, and turn it away, when no descriptors are left */
    bool paused;
    char socket[64];
    Counters *counters;
    int counters_fd;
    int shared_stats; /* negative: not published */
    Connection *connections;
    size_t n_connections; /* that are open */
    size_t n_waiting;
    size_t files_most; /* descriptors that we may have */
    uint64_t serials;
    uint64_t pass;
    Names names;
    Janitor janitor;
    BrokerOwner owner;
    Admission admission;
    uint64_t named_bytes; /* when last counted */
    double count_next;
    uint64_t names_made;
    uint64_t names_served;
    uint64_t turned_away;
    uint64_t served_at_refusal; /* bytes, when a request was last refused */
};

/* --- Counting ----------------------------------------------------------------------------------------- */

/* Named memory that is not in segments: Python's shared memory and small tensors. */
static uint64_t named_bytes(const Names *names)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].text && !names->slots[i].counted)
            bytes += fd_held_bytes(names->slots[i].fd);
    return bytes;
}

static void count(Broker *broker)
{
    double began = now_seconds();
    broker->named_bytes = named_bytes(&broker->names);
    janitor_count(&broker->janitor, broker->named_bytes);
    double now = now_seconds();
    broker->count_next = now + MAX((now - began) * COUNT_SHARE, COUNT_SECONDS);
}

/* Counts at events that may be the peak, but not at every one of them. */
static void count_again(Broker *broker)
{
    if (now_seconds() >= broker->count_next)
        count(broker);
}

/* --- Descriptors -------------------------------------------------------------------------------------- */

/*
 * Each name, segment and client takes one descriptor. A name that arrives when none is left is lost, and with
 * it a tensor. So from half of them on, names come one at a time (`crowded`, protocol.h); from three quarters
 * on, no more are accepted, and their makers use /dev/shm instead. The last quarter is for clients, and for
 * names that were already on their way.
 */
static size_t files_used(const Broker *broker)
{
    return broker->names.n + broker->janitor.n + broker->n_connections;
}

static bool is_crowded(const Broker *broker)
{
    return atomic_load_explicit(&broker->counters->crowded, memory_order_relaxed) != 0;
}

static bool is_full(const Broker *broker)
{
    return files_used(broker) >= broker->files_most / 4 * 3;
}

/* After a change. */
static void crowd_look(Broker *broker)
{
    size_t used = files_used(broker);
    bool crowded =
        used >= broker->files_most / 2 || (is_crowded(broker) && used >= broker->files_most / 8 * 3);
    if (crowded != is_crowded(broker))
        atomic_store_explicit(&broker->counters->crowded, crowded, memory_order_relaxed);
}

/* --- Connections -------------------------------------------------------------------------------------- */

static void connection_drop(Connection *connection)
{
    if (connection->gone)
        return;
    Broker *broker = connection->broker;
    count_again(broker);
    source_close(&connection->source, broker->epoll);
    connection->gone = true;
    if (connection->waiting)
        broker->n_waiting--;
    connection->waiting = false;
    broker->n_connections--;
    janitor_abandon(&broker->janitor, connection->serial);
    budget_withdraw(&broker->admission.budget, connection->serial);
    broker->admission.look = true; /* what it held may be free */
    crowd_look(broker);
}

/* Never waits for the client: one that has not read its earlier answers is dropped. */
static bool connection_send(Connection *connection, const Message *message, int fd)
{
    return message_send(connection->source.fd, message, fd, MSG_DONTWAIT);
}

static bool connection_answer(Connection *connection, int error, int fd)
{
    Message answer = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_ANSWER, .error = error};
    return connection_send(connection, &answer, fd);
}

/* --- Messages ----------------------------------------------------------------------------------------- */

static bool message_is_sound(const Message *message, size_t size)
{
    return size == sizeof *message && message->magic == PROTOCOL_MAGIC &&
           memchr(message->name, '\0', sizeof message->name);
}

/* The rules by which glibc accepts a name for shm_open. 0: a file of that name could be made. */
static int name_error(const Broker *broker, const char *name)
{
    const char *file = name + (name[0] == '/');
    struct stat st;
    if (*file == '\0' || strchr(file, '/') || strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
        return EINVAL;
    if (names_find(&broker->names, name) >= 0)
        return EEXIST;
    return broker->shm >= 0 && fstatat(broker->shm, file, &st, AT_SYMLINK_NOFOLLOW) == 0 ? EEXIST : 0;
}

/* The rights of a file of mode 0600, which the name stands for: its creator's user may open it, and root. */
static bool may_have(const Connection *connection, int fd)
{
    struct stat st;
    return connection->uid == 0 || (fstat(fd, &st) == 0 && st.st_uid == connection->uid);
}

static bool name_put(Broker *broker, const char *name, int *fd)
{
    bool counted = janitor_knows(&broker->janitor, *fd);
    if (names_put(&broker->names, name, *fd, counted) < 0)
        return false;
    *fd = -EBADF;
    broker->names_made++;
    crowd_look(broker);
    count_again(broker);
    return true;
}

/* A name that another user already has is not replaced. */
static bool handle_put(Connection *connection, const Message *message, int *fd)
{
    int before = names_find(&connection->broker->names, message->name);
    return (before >= 0 && !may_have(connection, before)) || name_put(connection->broker, message->name, fd);
}

static bool handle_create(Connection *connection, const Message *message, int *fd)
{
    Broker *broker = connection->broker;
    int error = name_error(broker, message->name);
    if (error == 0 && is_full(broker))
        error = EMFILE;
    if (error == 0 && !name_put(broker, message->name, fd))
        error = ENOMEM;
    return connection_answer(connection, error, -1);
}

/* False: the name does not exist, and no answer was sent. */
static bool answer_about_name(Connection *connection, const Message *message, bool *ret_sound)
{
    Broker *broker = connection->broker;
    int fd = names_find(&broker->names, message->name);
    if (fd < 0)
        return false;
    if (!may_have(connection, fd)) {
        *ret_sound = connection_answer(connection, EACCES, -1);
    } else if (message->type == MESSAGE_GET) {
        broker->names_served++;
        *ret_sound = connection_answer(connection, 0, fd);
    } else {
        count_again(broker);
        (void)names_remove(&broker->names, message->name);
        crowd_look(broker);
        *ret_sound = connection_answer(connection, 0, -1);
    }
    return true;
}

/* A process that asks for a name has heard of it from another one, whose PUT may still lie in its queue: see
 * broker_settle. */
static bool handle_ask(Connection *connection, const Message *message)
{
    bool sound = !connection->waiting;
    if (!sound || answer_about_name(connection, message, &sound))
        return sound;
    connection->asked = *message;
    connection->asked_in = connection->broker->pass;
    connection->waiting = true;
    connection->broker->n_waiting++;
    return true;
}

static bool handle_room(Connection *connection, const Message *message, int fd)
{
    Broker *broker = connection->broker;
    int r =
        admission_ask(&broker->admission, &broker->janitor, connection->serial, connection->pid, fd, message);
    return r == 0 || connection_answer(connection, 0, -1);
}

static bool handle_adopt(Connection *connection, const Message *message)
{
    Message answer = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_ANSWER};
    _cleanup_close_ int fd = janitor_hand_on(&connection->broker->janitor, message->bytes, connection->uid,
                                             connection->serial, connection->pid, &answer.issue);
    answer.error = fd < 0 ? ENOENT : 0;
    return connection_send(connection, &answer, fd);
}

/* False: the message makes no sense, or cannot be answered. Takes *fd if it keeps it. */
static bool handle(Connection *connection, const Message *message, int *fd)
{
    Broker *broker = connection->broker;
    switch ((MessageType)message->type) {
    case MESSAGE_SEGMENT:
        count_again(broker);
        /* A segment that cannot be watched is simply not watched: its producer gives it back, later. */
        return *fd >= 0 && (is_full(broker) || janitor_add(&broker->janitor, *fd, connection->serial,
                                                           connection->pid) != -EINVAL);
    case MESSAGE_PUT:
        return *fd >= 0 && message->name[0] && handle_put(connection, message, fd);
    case MESSAGE_CREATE:
        return *fd >= 0 && handle_create(connection, message, fd);
    case MESSAGE_GET:
    case MESSAGE_UNLINK:
        return *fd < 0 && handle_ask(connection, message);
    case MESSAGE_ROOM:
        return *fd >= 0 && handle_room(connection, message, *fd);
    case MESSAGE_RELEASED:
        broker->admission.look = true;
        return true;
    case MESSAGE_ADOPT:
        return *fd < 0 && handle_adopt(connection, message);
    case MESSAGE_WHERE:
        if (broker->owner.where)
            broker->owner.where(broker->owner.context);
        return connection_answer(connection, broker->owner.where ? 0 : EOPNOTSUPP, -1);
    case MESSAGE_FAULT:
    case MESSAGE_STACK:
    case MESSAGE_CHILD:
    case MESSAGE_SAID:
    case MESSAGE_SITES:
    case MESSAGE_WELCOME:
    case MESSAGE_ANSWER:
        break;
    }
    return false;
}

/* Keeps the first descriptor and closes the others, which our library never sends. *ret_sound: there were no
 * others. */
static int take_rights(struct msghdr *packet, bool *ret_sound)
{
    int first = -EBADF;
    size_t n = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(packet); header; header = CMSG_NXTHDR(packet, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count_here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count_here; i++, n++) {
            int fd = -1;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (n == 0)
                first = fd;
            else
                fd_close(fd);
        }
    }
    *ret_sound = n <= 1;
    return first;
}

static bool is_testimony(const Testimony *testimony, size_t size)
{
    return size >= offsetof(Testimony, text) && size == offsetof(Testimony, text) + testimony->n &&
           testimony->magic == PROTOCOL_MAGIC && testimony->type >= MESSAGE_FAULT &&
           testimony->type <= MESSAGE_SITES;
}

static bool take_testimony(Connection *connection, const Testimony *testimony, size_t size, int maps)
{
    const BrokerOwner *owner = &connection->broker->owner;
    bool sound = owner->testify && owner->testify(owner->context, connection->pid, testimony, size, maps);
    return sound && (testimony->type != MESSAGE_FAULT || connection_answer(connection, 0, -1));
}

/* 1: one packet was handled. 0: there is none. -ECONNRESET: the client has gone, or must be dropped. */
static int connection_read_one(Connection *connection)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(RIGHTS_MAX * sizeof(int))];
    } control;
    union {
        Message message;
        Testimony testimony;
    } received;
    struct iovec part = {&received, sizeof received};
    struct msghdr packet = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(connection->source.fd, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    /* A client that goes without having read our welcome resets the connection; what it sent before is still
     * there, behind the error. */
    if (n < 0 && (errno == EINTR || errno == ECONNRESET))
        return 1;
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        return -ECONNRESET;
    bool sound = false;
    _cleanup_close_ int fd = take_rights(&packet, &sound);
    sound = sound && n > 0 && !(packet.msg_flags & MSG_TRUNC);
    if (sound && is_testimony(&received.testimony, (size_t)n))
        return take_testimony(connection, &received.testimony, (size_t)n, fd) ? 1 : -ECONNRESET;
    const Message *message = &received.message;
    sound = sound && !connection->only_speaks && message_is_sound(message, (size_t)n);
    /* A descriptor arrived and we have no room for it. The client did nothing wrong; if it waits, it is
     * answered. */
    if (sound && packet.msg_flags & MSG_CTRUNC)
        sound = (message->type != MESSAGE_CREATE && message->type != MESSAGE_ROOM) ||
                connection_answer(connection, message->type == MESSAGE_CREATE ? EMFILE : 0, -1);
    else
        sound = sound && handle(connection, message, &fd);
    return sound ? 1 : -ECONNRESET;
}

static void connection_read(Connection *connection)
{
    int r = connection->gone ? 0 : 1;
    for (int i = 0; r > 0 && i < PACKETS_MAX; i++)
        r = connection_read_one(connection);
    if (r < 0)
        connection_drop(connection);
}

static void connection_ready(Source *source)
{
    connection_read(SOURCE_OWNER(source, Connection, source));
}

/* --- Coming and going --------------------------------------------------------------------------------- */

/*
 * The kernel says which process connected, as of that time. Processes of our own user, and root's, are served
 * without a check. A process of another user must belong to the job: any process that finds the socket's name
 * can connect.
 */
static Peer peer_of(Broker *broker, int fd, struct ucred *ret)
{
    socklen_t size = sizeof *ret;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) < 0)
        return PEER_STRANGER;
    if (ret->uid == geteuid() || ret->uid == 0)
        return PEER_JOB;
    const BrokerOwner *owner = &broker->owner;
    Peer whose = owner->peer ? owner->peer(owner->context, ret->pid, ret->uid) : PEER_STRANGER;
    broker->turned_away += whose == PEER_STRANGER;
    return whose;
}

static void connection_add(Broker *broker, int accepted)
{
    _cleanup_close_ int fd = accepted;
    struct ucred credentials;
    Peer peer = peer_of(broker, fd, &credentials);
    if (peer == PEER_STRANGER)
        return;
    Connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return;
    *connection = (Connection){
        .source = {.fd = fd, .ready = connection_ready},
        .next = broker->connections,
        .broker = broker,
        .serial = ++broker->serials,
        .pid = credentials.pid,
        .uid = credentials.uid,
        .only_speaks = peer == PEER_GONE,
    };
    /* A process that has already ended may have left a testimony, so it is heard all the same. */
    Message welcome = {.magic = PROTOCOL_MAGIC, .type = MESSAGE_WELCOME};
    if (peer == PEER_JOB)
        (void)connection_send(connection, &welcome, broker->counters_fd);
    if (source_watch(&connection->source, broker->epoll) < 0) {
        free(connection);
        return;
    }
    broker->connections = connection;
    broker->n_connections++;
    crowd_look(broker);
    TAKE_FD(fd);
}

/* Without descriptors the client would stay in the queue and wait: it is accepted, and sent away. */
static int turn_away(Broker *broker)
{
    fd_close(TAKE_FD(broker->spare));
    int fd = accept4(broker->listener.fd, NULL, NULL, SOCK_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    fd_close(fd);
    broker->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return r;
}

static void listener_pause(Broker *broker, bool pause)
{
    struct epoll_event event = {.events = pause ? 0 : EPOLLIN, .data.ptr = &broker->listener};
    broker->paused = pause;
    (void)epoll_ctl(broker->epoll, EPOLL_CTL_MOD, broker->listener.fd, &event);
}

static void listener_ready(Source *source)
{
    Broker *broker = SOURCE_OWNER(source, Broker, listener);
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        connection_add(broker, fd);
        return;
    }
    int r = errno == EMFILE || errno == ENFILE ? turn_away(broker) : -errno;
    if (r < 0 && r != -EAGAIN && r != -ECONNABORTED && r != -EINTR)
        listener_pause(broker, true); /* until the next tick: the client would wake us all the time */
}

/* A question that was asked before this pass over the queues began has its final answer when the pass has
 * ended. */
static void answer_waiting(Broker *broker)
{
    for (Connection *connection = broker->connections; connection; connection = connection->next) {
        if (!connection->waiting || connection->asked_in >= broker->pass)
            continue;
        bool sound = true;
        connection->waiting = false;
        broker->n_waiting--;
        if (!answer_about_name(connection, &connection->asked, &sound))
            sound = connection_answer(connection, ENOENT, -1);
        if (!sound)
            connection_drop(connection);
    }
}

static void forget_gone(Broker *broker)
{
    for (Connection **link = &broker->connections; *link;) {
        Connection *connection = *link;
        if (connection->gone) {
            *link = connection->next;
            free(connection);
        } else
            link = &connection->next;
    }
}

static void answer_room(void *context, uint64_t id, int error)
{
    Broker *broker = context;
    if (error != 0)
        broker->served_at_refusal = broker_bytes_served(broker);
    for (Connection *connection = broker->connections; connection; connection = connection->next)
        if (connection->serial == id && !connection->gone && !connection_answer(connection, error, -1))
            connection_drop(connection);
}

void broker_settle(Broker *broker)
{
    /* Others may ask while the pass is running: they wait for the next one, after whatever else has happened.
     */
    if (broker->n_waiting > 0) {
        broker->pass++;
        for (Connection *connection = broker->connections; connection; connection = connection->next)
            connection_read(connection);
        answer_waiting(broker);
    }
    admission_settle(&broker->admission, &broker->janitor, broker->named_bytes, answer_room, broker);
    atomic_store_explicit(&broker->counters->waiting, admission_waiting(&broker->admission),
                          memory_order_relaxed);
    forget_gone(broker);
    if (broker->janitor.busy)
        janitor_work(&broker->janitor);
    atomic_store_explicit(&broker->counters->adoptable, janitor_adoptable(&broker->janitor),
                          memory_order_relaxed);
}

int broker_timeout(const Broker *broker)
{
    return broker->janitor.busy || broker->n_waiting > 0 ? 0 : admission_timeout(&broker->admission);
}

/* NULL: batches took the lane. */
static const char *lane_why(uint64_t batches, uint32_t whys)
{
    static const char *const names[] = {
        [LANE_OFF] = "off", [LANE_PYTHON] = "python", [LANE_TORCH] = "torch", [LANE_TRAINER] = "trainer"};
    if (batches > 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (whys & 1U << i)
            return names[i];
    return "no-batches";
}

/* NULL: something was frozen, and nothing prevented more. */
static const char *freeze_why(uint64_t objects, uint32_t whys)
{
    /* The most telling first: one job may have processes of many kinds. */
    static const struct {
        FreezeWhy why;
        const char *name;
    } names[] = {{FREEZE_DROPPED, "dropped"},    {FREEZE_FULL, "limit"},
                 {FREEZE_MEMORY, "memory"},      {FREEZE_OFF, "off"},
                 {FREEZE_PYTHON, "python"},      {FREEZE_BUILD, "build"},
                 {FREEZE_START, "start-method"}, {FREEZE_TORCH, "torch"}};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (whys & 1U << names[i].why)
            return names[i].name;
    return objects > 0 ? NULL : "no-data";
}

static FreezingNow freezing_now(const Counters *counters)
{
    enum { SILENT_MSEC = 2000 }; /* a process that was killed says nothing more */
    uint64_t since = atomic_load_explicit(&counters->freezing_since, memory_order_relaxed);
    uint64_t last = atomic_load_explicit(&counters->freezing_msec, memory_order_relaxed);
    uint64_t now = (uint64_t)(now_seconds() * 1000);
    if (since == 0 || now < since || now > last + SILENT_MSEC)
        return (FreezingNow){0};
    return (FreezingNow){(double)(now - since) / 1000,
                         atomic_load_explicit(&counters->freezing_objects, memory_order_relaxed)};
}

static void trainer_waits_take(const Counters *counters, GuardFigures *figures)
{
    _Static_assert((int)TRAINER_WAITS == (int)LOADER_WAITS, "one each");
    for (size_t i = 0; i < LOADER_WAITS; i++) {
        const LoaderWait *wait = &counters->loader_waits[i];
        TrainerWait *slot = &figures->trainer_waits[figures->n_trainer_waits];
        slot->pid = atomic_load_explicit(&wait->pid, memory_order_relaxed);
        slot->msec = atomic_load_explicit(&wait->msec, memory_order_relaxed);
        figures->n_trainer_waits += slot->pid > 0;
    }
}

/* As last counted. */
static GuardFigures figures_now(const Broker *broker)
{
    Counters *counters = broker->counters;
#define READ(name) atomic_load_explicit(&counters->name, memory_order_relaxed)
    GuardFigures figures = {
        .segments_created = READ(segments_created),
        .segments_reused = READ(segments_reused),
        .bytes_backed = READ(bytes_backed),
        .small_backed = READ(small_backed),
        .pinned_bytes = READ(pinned_bytes),
        .batches = READ(batches),
        .lane = {READ(lane_batches), READ(lane_value_bytes), READ(lane_segment_bytes), READ(lane_declined),
                 lane_why(READ(lane_batches), READ(lane_whys))},
        .freeze = {READ(freeze_objects), READ(freeze_bytes), (double)READ(freeze_usec) / 1e6,
                   READ(freeze_left_bytes), freeze_why(READ(freeze_objects), READ(freeze_whys))},
        .freezing = freezing_now(counters),
        .fallbacks = READ(fallbacks),
        .names_made = broker->names_made,
        .names_served = broker->names_served,
        .turned_away = broker->turned_away,
        .bytes_now = broker->janitor.bytes + broker->named_bytes,
        .bytes_peak = broker->janitor.bytes_peak,
        .budget_bytes = broker->admission.budget.limit_bytes,
        .waiting = broker->admission.budget.n,
        .waits = broker->admission.budget.waits,
        .waited_seconds = broker->admission.budget.waited_seconds,
        .queued_seconds = admission_queued(&broker->admission),
        .rescues = broker->admission.budget.rescues_all,
        .wanted_bytes = broker->admission.budget.wanted_bytes,
        .wanted_exists = broker->admission.budget.wanted_exists,
        .refused = broker->admission.budget.refused,
        .refused_bytes = broker->admission.budget.refused_last.bytes,
        .refused_pid = broker->admission.budget.refused_last.pid,
        .refused_for_want = broker->admission.budget.refused_for_want,
        .refused_seconds = broker->admission.budget.refused_when,
        .served_after = broker_bytes_served(broker) > broker->served_at_refusal,
        .n_refusals = broker->admission.n_refusals,
        .wrote_msec = READ(wrote_msec),
        .unfinished = READ(unfinished) != 0,
        .adrift = READ(adrift) != 0,
        .line = READ(line) != 0,
    };
#undef READ
    memcpy(figures.refusals, broker->admission.refusals, sizeof figures.refusals);
    trainer_waits_take(counters, &figures);
    return figures;
}

void broker_tick(Broker *broker, bool short_of_memory)
{
    if (broker->paused)
        listener_pause(broker, false);
    count(broker);
    janitor_look(&broker->janitor, short_of_memory);
    admission_tick(&broker->admission);
    crowd_look(broker);
    GuardFigures figures = figures_now(broker);
    shared_stats_write(broker->shared_stats, &figures);
}

bool broker_holds_memory(const Broker *broker)
{
    return broker->janitor.bytes > 0;
}

/* --- Beginning and end -------------------------------------------------------------------------------- */

/* The page's size is sealed: if a client could truncate it, we would die of SIGBUS. */
static int counters_make(Broker *broker)
{
    int fd = memfd_create("shmguard-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
        fd = memfd_create("shmguard-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    broker->counters_fd = fd;
    if (ftruncate(fd, sizeof(Counters)) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    void *page = mmap(NULL, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    broker->counters = page;
    (void)madvise(page, sizeof(Counters), MADV_DONTFORK); /* the sentinel is to hold none of our memory */
    broker->counters->magic = PROTOCOL_MAGIC;
    broker->counters->version = 1;
    atomic_store_explicit(&broker->counters->lane_whys, broker->owner.no_lane ? 1U << LANE_OFF : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&broker->counters->freeze_whys, broker->owner.no_freeze ? 1U << FREEZE_OFF : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&broker->counters->freeze_limit, broker->owner.freeze_bytes, memory_order_relaxed);
    atomic_store_explicit(&broker->counters->budgeted, broker->owner.spare_now != NULL, memory_order_relaxed);
    return 0;
}

static int socket_listen(Broker *broker)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return -EIO;
    snprintf(broker->socket, sizeof broker->socket, "shmguard-%d-%016llx%016llx", (int)getpid(),
             (unsigned long long)random[0], (unsigned long long)random[1]);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n = strlen(broker->socket);
    memcpy(address.sun_path + 1, broker->socket, n); /* abstract: it has no file, and goes with us */
    broker->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (broker->listener.fd < 0 ||
        bind(broker->listener.fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
        listen(broker->listener.fd, SOMAXCONN) < 0)
        return -errno;
    return source_watch(&broker->listener, broker->epoll);
}

static size_t files_most(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) < 0 ? 1024 : (size_t)MIN(files.rlim_cur, (rlim_t)INT_MAX);
}

int broker_open(int epoll, const char *names_path, const BrokerOwner *owner, Broker **ret)
{
    Broker *broker = calloc(1, sizeof *broker);
    if (!broker)
        return -ENOMEM;
    *broker = (Broker){
        .listener = {.fd = -EBADF, .ready = listener_ready},
        .epoll = epoll,
        .shm = open(names_path, O_PATH | O_DIRECTORY | O_CLOEXEC),
        .spare = open("/dev/null", O_RDONLY | O_CLOEXEC),
        .counters_fd = -EBADF,
        .shared_stats = shared_stats_make(),
        .files_most = files_most(),
        .owner = *owner,
        .admission = {.budget = {.limit_bytes = owner->budget_bytes,
                                 .wished = owner->budget_is_wished,
                                 .wait_seconds = owner->wait_seconds},
                      .root = owner->root,
                      .spare_now = owner->spare_now,
                      .ending = owner->ending,
                      .context = owner->context},
        .janitor = {.most = files_most() / 4}, /* names need descriptors more than watching does */
    };
    int r = counters_make(broker);
    if (r >= 0)
        r = socket_listen(broker);
    if (r < 0) {
        broker_free(broker);
        return r;
    }
    *ret = broker;
    return 0;
}

void broker_names_at(Broker *broker, const char *names_path)
{
    fd_close(broker->shm);
    broker->shm = open(names_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void broker_free(Broker *broker)
{
    if (!broker)
        return;
    for (Connection *connection = broker->connections, *next = NULL; connection; connection = next) {
        next = connection->next;
        if (!connection->gone)
            source_close(&connection->source, broker->epoll);
        free(connection);
    }
    names_free(&broker->names);
    admission_free(&broker->admission);
    janitor_free(&broker->janitor);
    if (broker->counters)
        munmap(broker->counters, sizeof(Counters));
    fd_close(broker->counters_fd);
    fd_close(broker->shared_stats);
    source_close(&broker->listener, broker->epoll);
    fd_close(broker->spare);
    fd_close(broker->shm);
    free(broker);
}

const char *broker_socket(const Broker *broker)
{
    return broker->socket;
}

Counters *broker_counters(const Broker *broker)
{
    return broker->counters;
}

void broker_line(Broker *broker, uint64_t terminal, bool drawn)
{
    atomic_store_explicit(&broker->counters->terminal, terminal, memory_order_relaxed);
    atomic_store_explicit(&broker->counters->line, drawn, memory_order_relaxed);
}

double broker_crawled(const Broker *broker)
{
    return budget_crawled(&broker->admission.budget, now_seconds());
}

bool broker_crawl_is_due(Broker *broker)
{
    return budget_crawl_is_due(&broker->admission.budget, now_seconds());
}

uint64_t broker_kept_by(const Broker *broker, int pid)
{
    return janitor_kept_by(&broker->janitor, broker->owner.root, pid);
}

GuardFigures broker_figures(Broker *broker)
{
    count(broker);
    return figures_now(broker);
}

uint64_t broker_bytes_served(const Broker *broker)
{
    Counters *counters = broker->counters;
    return atomic_load_explicit(&counters->bytes_backed, memory_order_relaxed) +
           atomic_load_explicit(&counters->small_bytes, memory_order_relaxed) +
           atomic_load_explicit(&counters->lane_value_bytes, memory_order_relaxed);
}
