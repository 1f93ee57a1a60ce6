/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trainer and its worker under the preload library, with a CUDA that is made up: what PyTorch does with a
 * batch, and what may go wrong when the GPU reads it late. That a segment was issued again is seen by its
 * inode, and that it was issued too soon by what arrives on the "device".
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake-cuda.h"
#include "segment-inode.h"

#define MIB ((size_t)1 << 20)

/* --- The worker --------------------------------------------------------------------------------------- */

typedef struct Order {
    size_t size;
    int fill;
    bool keep; /* the worker keeps the tensor until the next order */
    int times; /* to be sent */
} Order;

static int line_to_worker;
static const char *own_path;

static int tensor_make(int number, size_t size, int fill, char **ret_data)
{
    char name[64];
    snprintf(name, sizeof name, "/torch_%d_%d", getpid(), number);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        _exit(9);
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED || shm_unlink(name) < 0)
        _exit(9);
    memset(data, fill, size);
    *ret_data = data;
    return fd;
}

static void fd_send(int line, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {
        .header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (sendmsg(line, &message, 0) != 1)
        _exit(9);
}

static int fd_receive(int line)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 0;
    int fd = -1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    assert_int_equal(recvmsg(line, &message, MSG_CMSG_CLOEXEC), 1);
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}

static _Noreturn void worker_run(int line)
{
    char *kept = NULL;
    size_t kept_size = 0;
    Order order;
    for (int number = 0; read(line, &order, sizeof order) == sizeof order; number++) {
        char *data = NULL;
        if (kept)
            munmap(kept, kept_size);
        kept = NULL;
        int fd = tensor_make(number, order.size, order.fill, &data);
        int sent[2];
        for (int i = 0; i < order.times; i++)
            sent[i] = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* as Python does when it pickles a descriptor */
        if (order.keep) {
            kept = data;
            kept_size = order.size;
        } else
            munmap(data, order.size); /* before it is sent, as the queue's thread does */
        close(fd);
        for (int i = 0; i < order.times; i++) {
            fd_send(line, sent[i]);
            close(sent[i]);
        }
    }
    _exit(0);
}

static void worker_start(void)
{
    int line[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(line[0]);
        worker_run(line[1]);
    }
    close(line[1]);
    line_to_worker = line[0];
}

/* --- The trainer -------------------------------------------------------------------------------------- */

typedef struct Batch {
    int fd;
    char *data;
    size_t size;
    ino_t inode;
    int fill;
} Batch;

static Batch batch_get(size_t size, int fill, bool keep)
{
    Order order = {size, fill, keep, 1};
    assert_int_equal(write(line_to_worker, &order, sizeof order), sizeof order);
    Batch batch = {.fd = fd_receive(line_to_worker), .size = size, .fill = fill};
    batch.data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, batch.fd, 0);
    assert_ptr_not_equal(batch.data, MAP_FAILED);
    batch.inode = segment_inode(batch.fd);
    return batch;
}

static void batch_drop(Batch *batch)
{
    assert_int_equal(munmap(batch->data, batch->size), 0);
    assert_int_equal(close(batch->fd), 0);
    *batch = (Batch){.fd = -1};
}

int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
int cuMemHostUnregister(void *address);

static bool is_pinned(const void *address)
{
    FakeAttributes attributes;
    assert_int_equal(cudaPointerGetAttributes(&attributes, address), 0);
    return attributes.type == 1;
}

/* As the loader's thread asks. */
static bool pin(const Batch *batch)
{
    char before[16];
    prctl(PR_GET_NAME, before);
    prctl(PR_SET_NAME, "pt_data_pin");
    bool pinned = is_pinned(batch->data);
    prctl(PR_SET_NAME, before);
    return pinned;
}

/* A segment is pinned when it comes back. */
static Batch batch_pinned(size_t size, int fill)
{
    Batch batch = {0};
    for (int i = 0; i < 5; i++) { /* on a slow machine the worker may have given it up meanwhile */
        batch = batch_get(size, fill, false);
        if (pin(&batch))
            return batch;
        batch_drop(&batch);
    }
    fail_msg("a batch of %zu bytes was not pinned", size);
    return batch;
}

static void batch_rehearse(size_t size)
{
    Batch batch = batch_get(size, 1, false);
    batch_drop(&batch);
}

/* The first question only tells the guard that a loader pins its batches. */
static void warm_up(void)
{
    Batch batch = batch_get(MIB, 1, false);
    assert_false(pin(&batch));
    batch_drop(&batch);
}

static bool is_filled(const char *data, size_t size, int fill)
{
    return data[0] == (char)fill && memcmp(data, data + 1, size - 1) == 0;
}

static void sleep_msec(unsigned msec)
{
    struct timespec time = {msec / 1000, (long)(msec % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* Whether the worker is given the segment again, in so many batches. They are kept until the end, because
 * otherwise a segment of a better size could come back each time. */
static bool comes_back(ino_t inode, size_t size, int tries)
{
    enum { TRIES_MAX = 12 };
    Batch batches[TRIES_MAX];
    bool found = false;
    int n = 0;
    while (n < tries && !found) {
        batches[n] = batch_get(size, 99, false);
        found = batches[n++].inode == inode;
    }
    while (n > 0)
        batch_drop(&batches[--n]);
    return found;
}

/* --- Asked whether it is pinned ----------------------------------------------------------------------- */

static void test_pinned_in_place(void **state)
{
    (void)state;
    Batch batch = batch_pinned(2 * MIB, 3);
    assert_true(is_pinned(batch.data));       /* for any caller */
    assert_true(is_pinned(batch.data + MIB)); /* wherever */
    assert_false(pin(&batch));                /* the loader, of another tensor in the same storage */
    assert_true(is_pinned(batch.data));
    assert_true(is_filled(batch.data, batch.size, 3));
    size_t registrations = fake_registrations();
    ino_t inode = batch.inode;
    batch_drop(&batch);
    batch = batch_pinned(2 * MIB, 4); /* the same segment, registered once */
    assert_int_equal(batch.inode, inode);
    assert_int_equal(fake_registrations(), registrations);
    batch_drop(&batch);
}

static void test_only_the_loader_pins(void **state)
{
    (void)state;
    batch_rehearse(3 * MIB);
    Batch batch = batch_get(3 * MIB, 1, false);
    assert_false(is_pinned(batch.data));
    assert_true(pin(&batch));
    batch_drop(&batch);
    batch = batch_get(3 * MIB, 1, false); /* registered by now, and not said to be */
    assert_false(is_pinned(batch.data));
    batch_drop(&batch);
}

static void test_what_the_worker_keeps_is_copied(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        Batch batch = batch_get(4 * MIB, 1, true);
        assert_false(pin(&batch));
        batch_drop(&batch);
    }
    Batch batch;
    batch = batch_pinned(4 * MIB, 2);
    batch_drop(&batch);
}

/* By a process that is neither its producer nor the trainer. */
static void test_what_was_handed_on_is_copied(void **state)
{
    (void)state;
    batch_rehearse(4 * MIB);
    Batch batch = batch_get(4 * MIB, 1, false);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(munmap(batch.data, batch.size), 0);
    pid_t pid = fork();
    if (pid == 0) {
        void *has = mmap(NULL, batch.size, PROT_READ | PROT_WRITE, MAP_SHARED, batch.fd, 0);
        if (has != MAP_FAILED && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    batch.data = mmap(NULL, batch.size, PROT_READ | PROT_WRITE, MAP_SHARED, batch.fd, 0);
    assert_false(pin(&batch));
    assert_int_equal(munmap(batch.data, batch.size), 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    batch.data = mmap(NULL, batch.size, PROT_READ | PROT_WRITE, MAP_SHARED, batch.fd, 0);
    assert_true(pin(&batch));
    batch_drop(&batch);
    close(ready[0]);
    close(ready[1]);
}

/* A second one is on its way: writing to the first must not change it. */
static void test_what_was_sent_twice_is_copied(void **state)
{
    (void)state;
    batch_rehearse(4 * MIB);
    Order order = {4 * MIB, 1, false, 2};
    assert_int_equal(write(line_to_worker, &order, sizeof order), sizeof order);
    Batch batch = {.fd = fd_receive(line_to_worker), .size = order.size};
    batch.data = mmap(NULL, batch.size, PROT_READ | PROT_WRITE, MAP_SHARED, batch.fd, 0);
    assert_false(pin(&batch));
    batch_drop(&batch);
    close(fd_receive(line_to_worker));
    batch = batch_pinned(4 * MIB, 2);
    batch_drop(&batch);
}

static void test_what_is_made_here_is_copied(void **state)
{
    (void)state;
    Batch batch = {.size = MIB};
    batch.fd = tensor_make(1000000, MIB, 1, &batch.data);
    assert_false(pin(&batch));
    batch_drop(&batch);
}

/* What the program has registered by itself is pinned, as it expects. */
static void test_what_the_program_pins(void **state)
{
    (void)state;
    Batch made = {.size = MIB};
    made.fd = tensor_make(1000001, MIB, 1, &made.data);
    batch_rehearse(5 * MIB);
    Batch batches[] = {made, batch_get(5 * MIB, 1, false)};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cuMemHostRegister_v2(batches[i].data, batches[i].size, 1), 0);
        assert_true(is_pinned(batches[i].data));
        assert_true(pin(&batches[i]));
        assert_int_equal(cuMemHostUnregister(batches[i].data), 0);
        assert_false(is_pinned(batches[i].data));
        batch_drop(&batches[i]);
    }
}

/* Somebody unmaps a part of what is registered, and something else comes to lie there: CUDA knows only what
 * was there before. */
static void test_what_lies_where_one_was_lost(void **state)
{
    (void)state;
    Batch batch = batch_pinned(8 * MIB, 1);
    char *address = batch.data;
    assert_int_equal(munmap(batch.data + 4 * MIB, 4 * MIB), 0);
    assert_int_equal(munmap(batch.data, 4 * MIB), 0);
    assert_int_equal(close(batch.fd), 0);
    for (int i = 0; i < 6; i++) {
        batch = batch_get(8 * MIB, 2, false);
        assert_false(batch.data == address && pin(&batch));
        batch_drop(&batch);
    }
}

static void test_no_context(void **state)
{
    (void)state;
    batch_rehearse(5 * MIB);
    fake_context(false);
    Batch batch = batch_get(5 * MIB, 1, false);
    for (int i = 0; i < 8; i++) /* as often as a loader is begun, it is no reason to give up */
        assert_false(pin(&batch));
    fake_context(true);
    assert_true(pin(&batch));
    batch_drop(&batch);
}

static void test_a_larger_tensor_is_registered_again(void **state)
{
    (void)state;
    size_t small = 15 * MIB + 1;
    size_t large = 16 * MIB - 1; /* in segments of one size */
    Batch batch = batch_pinned(small, 1);
    batch_drop(&batch);
    char *device = malloc(large);
    batch = batch_get(large, 2, false);
    assert_int_equal(cudaMemcpyAsync(device, batch.data, large, 1, NULL), 0);
    assert_false(pin(&batch));
    batch_drop(&batch);
    fake_stream_wait(NULL);
    assert_true(is_filled(device, large, 2));
    free(device);
    for (int i = 0; i < 3; i++) {
        batch = batch_get(large, 3, false);
        bool pinned = pin(&batch);
        assert_true(pinned || i < 2);
        assert_true(is_filled(batch.data, large, 3));
        batch_drop(&batch);
    }
}

/* --- Copies ------------------------------------------------------------------------------------------- */

static void test_a_copy_is_waited_for(void **state)
{
    (void)state;
    void *stream = fake_stream_make();
    char *device = malloc(6 * MIB);
    fake_stand(true);
    Batch batch = batch_pinned(6 * MIB, 7);
    ino_t inode = batch.inode;
    assert_int_equal(cudaMemcpyAsync(device, batch.data, batch.size, 1, stream), 0);
    batch_drop(&batch);
    assert_false(comes_back(inode, 6 * MIB, 3));
    fake_stand(false);
    fake_stream_wait(stream);
    assert_true(is_filled(device, 6 * MIB, 7));
    assert_true(comes_back(inode, 6 * MIB, 8));
    free(device);
}

/* By a part of it, in rows, and on the stream of the thread. */
static void test_other_copies_are_waited_for(void **state)
{
    (void)state;
    char *device = calloc(1, 7 * MIB);
    void *stream = fake_stream_make();
    for (int kind = 0; kind < 3; kind++) {
        fake_stand(true);
        Batch batch = batch_pinned(7 * MIB, 10 + kind);
        ino_t inode = batch.inode;
        if (kind == 0)
            assert_int_equal(cudaMemcpyAsync(device, batch.data + MIB, 5, 1, stream), 0);
        else if (kind == 1)
            assert_int_equal(cudaMemcpy2DAsync(device, 10, batch.data, MIB, 5, 6, 1, stream), 0);
        else
            assert_int_equal(cudaMemcpyAsync_ptsz(device, batch.data, 5, 1, NULL), 0);
        batch_drop(&batch);
        assert_false(comes_back(inode, 7 * MIB, 3));
        fake_stand(false);
        fake_stream_wait(stream);
        fake_stream_wait(NULL);
        assert_true(is_filled(device, 5, 10 + kind));
        assert_true(comes_back(inode, 7 * MIB, 8));
    }
    free(device);
}

static void test_copies_back_are_waited_for(void **state)
{
    (void)state;
    void *stream = fake_stream_make();
    char *device = malloc(MIB);
    memset(device, 42, MIB);
    fake_stand(true);
    Batch batch = batch_pinned(9 * MIB, 1);
    ino_t inode = batch.inode;
    assert_int_equal(cudaMemcpyAsync(batch.data, device, MIB, 2, stream), 0);
    batch_drop(&batch);
    assert_false(comes_back(inode, 9 * MIB, 3));
    fake_stand(false);
    fake_stream_wait(stream);
    assert_true(comes_back(inode, 9 * MIB, 8));
    free(device);
}

/* Each event is of the context of its stream, whatever the thread has at the moment. */
static void test_two_devices(void **state)
{
    (void)state;
    enum { SIZE = 3 * MIB / 2 };
    char *device = malloc(SIZE);
    void *streams[3] = {fake_stream_make()};
    fake_device(1);
    streams[1] = fake_stream_make();          /* and the third is what every device has */
    for (int round = 0; round < 3; round++) { /* with events that were used before */
        Batch batch = batch_pinned(SIZE, 20 + round);
        ino_t inode = batch.inode;
        fake_stand(true);
        for (size_t i = 0; i < 3; i++) {
            size_t part = SIZE / 3;
            fake_device(round == 1 ? 0 : 1);
            assert_int_equal(cudaMemcpyAsync(device + i * part, batch.data + i * part, part, 1, streams[i]),
                             0);
        }
        batch_drop(&batch);
        assert_false(comes_back(inode, SIZE, 3));
        fake_stand(false);
        for (size_t i = 0; i < 3; i++)
            fake_stream_wait(streams[i]);
        assert_true(is_filled(device, SIZE, 20 + round));
        assert_true(comes_back(inode, SIZE, 8));
    }
    fake_device(0);
    assert_int_equal(fake_offences(), 0);
    free(device);
}

/* A tensor that was not reported as pinned: the program may write to it as soon as the call returns. */
static void test_a_copy_of_what_was_not_granted(void **state)
{
    (void)state;
    void *stream = fake_stream_make();
    char *device = malloc(10 * MIB);
    Batch batch = batch_pinned(10 * MIB, 1);
    batch_drop(&batch);
    fake_delay(100);
    batch = batch_get(10 * MIB, 2, false);
    assert_int_equal(cudaMemcpyAsync(device, batch.data, batch.size, 1, stream), 0);
    memset(batch.data, 3, batch.size);
    batch_drop(&batch);
    fake_delay(0);
    fake_stream_wait(stream);
    assert_true(is_filled(device, 10 * MIB, 2));
    free(device);
}

static void test_more_streams_than_events(void **state)
{
    (void)state;
    enum { STREAMS = 24 };
    void *streams[STREAMS];
    char *device = malloc(STREAMS * MIB);
    fake_delay(100);
    Batch batch = batch_pinned(11 * MIB, 5);
    ino_t inode = batch.inode;
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = fake_stream_make();
        assert_non_null(streams[i]);
        assert_int_equal(cudaMemcpyAsync(device + i * MIB, batch.data, MIB, 1, streams[i]), 0);
    }
    batch_drop(&batch);
    for (int i = 0; i < STREAMS; i++) {
        fake_stream_wait(streams[i]);
        fake_stream_destroy(streams[i]);
    }
    fake_delay(0);
    assert_true(is_filled(device, STREAMS * MIB, 5));
    assert_false(comes_back(inode, 11 * MIB, 12)); /* it is not known when some are done */
    free(device);
}

enum { HAZARD_BATCHES = 400, HAZARD_SLOTS = 8, HAZARD_BYTES = 768 * 1024 };

/* The worker writes as fast as it can, and copies are late: on some stream, and the batch dropped at once or
 * a little later. What arrived is looked at when it has. */
static void test_hazard(void **state)
{
    (void)state;
    void *streams[HAZARD_SLOTS];
    char *devices[HAZARD_SLOTS];
    int expected[HAZARD_SLOTS];
    Batch late = {.fd = -1};
    for (int i = 0; i < HAZARD_SLOTS; i++) {
        streams[i] = fake_stream_make();
        devices[i] = malloc(HAZARD_BYTES);
        expected[i] = -1;
    }
    fake_stand(false); /* where a test before this one has failed */
    fake_delay(4);
    int wrong = 0;
    int pinned = 0;
    for (int number = 0; number < HAZARD_BATCHES; number++) {
        int slot = number % HAZARD_SLOTS;
        fake_stream_wait(streams[slot]);
        wrong += expected[slot] >= 0 && !is_filled(devices[slot], HAZARD_BYTES, expected[slot]);
        Batch batch = batch_get(HAZARD_BYTES, number % 127, false);
        pinned += pin(&batch);
        assert_int_equal(cudaMemcpyAsync(devices[slot], batch.data, batch.size, 1, streams[slot]), 0);
        expected[slot] = batch.fill;
        if (late.fd >= 0)
            batch_drop(&late);
        if (number % 3 == 0)
            late = batch;
        else
            batch_drop(&batch);
    }
    if (late.fd >= 0)
        batch_drop(&late);
    for (int i = 0; i < HAZARD_SLOTS; i++) {
        fake_stream_wait(streams[i]);
        wrong += !is_filled(devices[i], HAZARD_BYTES, expected[i]);
        fake_stream_destroy(streams[i]);
        free(devices[i]);
    }
    fake_delay(0);
    assert_int_equal(wrong, 0);
    assert_true(pinned > HAZARD_BATCHES / 2);
}

typedef struct Copier {
    const Batch *batch;
    void *stream;
    char *device;
} Copier;

static void *copier_run(void *context)
{
    const Copier *copier = context;
    for (size_t i = 0; i < copier->batch->size / MIB; i++)
        cudaMemcpyAsync(copier->device + i * MIB, copier->batch->data + i * MIB, MIB, 1, copier->stream);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 6, ROUNDS = 10, SIZE_MIB = 5 };
    Copier copiers[THREADS];
    fake_delay(1);
    for (int i = 0; i < THREADS; i++)
        copiers[i] = (Copier){.stream = fake_stream_make(), .device = malloc(SIZE_MIB * MIB)};
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        Batch batch = batch_get(SIZE_MIB * MIB, round + 1, false);
        (void)pin(&batch);
        for (int i = 0; i < THREADS; i++) {
            copiers[i].batch = &batch;
            assert_int_equal(pthread_create(&threads[i], NULL, copier_run, &copiers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        batch_drop(&batch);
        (void)comes_back(0, SIZE_MIB * MIB, 1);
        for (int i = 0; i < THREADS; i++) {
            fake_stream_wait(copiers[i].stream);
            assert_true(is_filled(copiers[i].device, SIZE_MIB * MIB, round + 1));
        }
    }
    for (int i = 0; i < THREADS; i++) {
        fake_stream_destroy(copiers[i].stream);
        free(copiers[i].device);
    }
    fake_delay(0);
}

static void test_a_captured_segment_stays(void **state)
{
    (void)state;
    void *stream = fake_stream_make();
    void *other = fake_stream_make();
    char *device = malloc(12 * MIB);
    Batch batch = batch_pinned(12 * MIB, 1);
    ino_t inode = batch.inode;
    fake_capture(stream, true);
    assert_int_equal(cudaMemcpyAsync(device, batch.data, batch.size, 1, stream), 0);
    batch_drop(&batch);
    /* Pinning and copying beside it spoils nothing. */
    batch = batch_pinned(13 * MIB, 2);
    assert_int_equal(cudaMemcpyAsync(device, batch.data, MIB, 1, other), 0);
    batch_drop(&batch);
    fake_stream_wait(other);
    fake_capture(stream, false);
    assert_false(comes_back(inode, 12 * MIB, 12));
    assert_int_equal(fake_offences(), 0);
    free(device);
}

static void test_a_batch_of_copies_stays(void **state)
{
    (void)state;
    char *device = malloc(MIB);
    Batch batch = batch_pinned(14 * MIB, 1);
    ino_t inode = batch.inode;
    void *target = device;
    void *source = batch.data + 13 * MIB;
    size_t size = 100;
    assert_int_equal(cudaMemcpyBatchAsync(&target, &source, &size, 1, NULL, NULL, 0, NULL), 0);
    batch_drop(&batch);
    fake_stream_wait(NULL);
    assert_false(comes_back(inode, 14 * MIB, 12));
    free(device);
}

static void test_a_copy_that_failed(void **state)
{
    (void)state;
    char *device = malloc(MIB);
    Batch batch = batch_pinned(17 * MIB, 1);
    ino_t inode = batch.inode;
    fake_fail_copies(700);
    assert_int_equal(cudaMemcpyAsync(device, batch.data, MIB, 1, NULL), 700);
    fake_fail_copies(0);
    batch_drop(&batch);
    assert_false(comes_back(inode, 17 * MIB, 12));
    free(device);
}

/* --- Processes, memory, the end ----------------------------------------------------------------------- */

static void test_a_forked_child(void **state)
{
    (void)state;
    void *stream = fake_stream_make();
    char *device = malloc(18 * MIB);
    fake_stand(true);
    Batch waits = batch_pinned(18 * MIB, 7);
    Batch held = batch_pinned(19 * MIB, 8);
    ino_t inode = waits.inode;
    assert_int_equal(cudaMemcpyAsync(device, waits.data, waits.size, 1, stream), 0);
    batch_drop(&waits);
    pid_t pid = fork();
    if (pid == 0) {
        bool whole = is_filled(held.data, held.size, 8);
        munmap(held.data, held.size);
        sleep_msec(50);
        munmap(mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, held.fd, 0), MIB);
        bool clean = fake_offences() == 0;
        raise(SIGSTOP); /* lives on, with what it has inherited */
        _exit(whole && clean ? 0 : 1);
    }
    batch_drop(&held);
    assert_false(comes_back(inode, 18 * MIB, 2));
    fake_stand(false);
    fake_stream_wait(stream);
    assert_true(is_filled(device, 18 * MIB, 7));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_true(comes_back(inode, 18 * MIB, 8)); /* the child does not hold what only waited */
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    free(device);
}

static void test_unused_ones_are_given_back(void **state)
{
    (void)state;
    enum { TRIES = 100 };
    Batch batch;
    for (size_t i = 0; i < 4; i++) { /* on a slow machine those of earlier tests have gone already */
        batch = batch_pinned((22 + 2 * i) * MIB, 1);
        batch_drop(&batch);
    }
    size_t before = fake_registered();
    assert_true(before > 2);
    for (int i = 0; i < TRIES && fake_registered() > before - 2;
         i++) { /* a loader goes on, with batches of its own */
        sleep_msec(100);
        batch = batch_get(MIB, 1, false);
        (void)pin(&batch);
        batch_drop(&batch);
    }
    assert_in_range(fake_registered(), 1, before - 2);
}

static void test_no_offence(void **state)
{
    (void)state;
    assert_int_equal(fake_offences(), 0);
}

/* --- In processes of their own: after these nothing is pinned any more --------------------------------- */

static void test_an_error_sticks(void **state)
{
    (void)state;
    char *device = malloc(2 * MIB);
    void *stream = fake_stream_make();
    Batch batch = batch_pinned(2 * MIB, 1);
    ino_t inode = batch.inode;
    fake_stand(true); /* or it might be done before the error */
    assert_int_equal(cudaMemcpyAsync(device, batch.data, MIB, 1, stream), 0);
    fake_fail_queries(719);
    fake_stand(false);
    batch_drop(&batch);
    fake_stream_wait(stream);
    assert_false(comes_back(inode, 2 * MIB, 5));
    fake_fail_queries(0);
    batch = batch_get(3 * MIB, 1, false);
    assert_false(pin(&batch));
    batch_drop(&batch);
    assert_false(comes_back(inode, 2 * MIB, 12));
    free(device);
}

static void test_registering_fails(void **state)
{
    (void)state;
    fake_fail_register(2);
    for (int i = 0; i < 10; i++) {
        Batch batch = batch_get(2 * MIB, i, false);
        assert_false(pin(&batch));
        assert_true(is_filled(batch.data, batch.size, i));
        batch_drop(&batch);
    }
    fake_fail_register(0);
    assert_int_equal(fake_registered(), 0);
    assert_int_equal(fake_offences(), 0);
}

static void test_many_are_lost(void **state)
{
    (void)state;
    char *device = malloc(MIB);
    void *stream = fake_stream_make();
    int pinned = 0;
    fake_capture(stream, true);
    for (int i = 0; i < 60; i++) {
        Batch batch = batch_get(2 * MIB, i, false);
        bool is = pin(&batch);
        pinned += is;
        if (is)
            assert_int_equal(cudaMemcpyAsync(device, batch.data, MIB, 1, stream), 0);
        batch_drop(&batch);
    }
    fake_capture(stream, false);
    assert_int_equal(pinned, 16);
    free(device);
}

static void test_much_waits(void **state)
{
    (void)state;
    enum { BATCHES = 200 };
    char *device = malloc(MIB);
    void *stream = fake_stream_make();
    int pinned = 0;
    fake_stand(true);
    for (int i = 0; i < BATCHES; i++) {
        Batch batch = batch_get(MIB, i, false);
        bool is = pin(&batch);
        pinned += is;
        if (is)
            assert_int_equal(cudaMemcpyAsync(device, batch.data, 1, 1, stream), 0);
        batch_drop(&batch);
    }
    fake_stand(false);
    fake_stream_wait(stream);
    assert_in_range(pinned, 32, 64);
    free(device);
}

/* Nothing is registered: another order of binding, --pin off. */
static void test_nothing_is_pinned(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        Batch batch = batch_get(2 * MIB, i, false);
        assert_false(pin(&batch));
        batch_drop(&batch);
    }
    assert_int_equal(fake_registrations(), 0);
}

static void test_bound_elsewhere(void **state)
{
    void *library = dlopen(getenv("BOUND_ELSEWHERE"), RTLD_NOW | RTLD_DEEPBIND);
    assert_non_null(library);
    test_nothing_is_pinned(state);
}

static void test_an_unknown_copy(void **state)
{
    void *library = dlopen(getenv("UNKNOWN_COPY"), RTLD_NOW);
    assert_non_null(library);
    test_nothing_is_pinned(state);
}

/* The process ends while copies run; run by the one below. */
static void end_in_flight(void)
{
    worker_start();
    warm_up();
    void *stream = fake_stream_make();
    fake_delay(200);
    Batch batch = batch_pinned(4 * MIB, 1);
    cudaMemcpyAsync(malloc(4 * MIB), batch.data, batch.size, 1, stream);
    batch_drop(&batch);
    batch = batch_pinned(4 * MIB, 1);
    cudaMemcpyAsync(malloc(4 * MIB), batch.data, batch.size, 1, stream);
}

static void test_the_end(void **state)
{
    (void)state;
    const char *ways[] = {"exit", "_exit", "kill"};
    for (size_t i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            execl(own_path, own_path, "end", ways[i], NULL);
            _exit(9);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status), i == 2 ? SIGKILL : 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_pinned_in_place),
        cmocka_unit_test(test_only_the_loader_pins),
        cmocka_unit_test(test_what_the_worker_keeps_is_copied),
        cmocka_unit_test(test_what_was_handed_on_is_copied),
        cmocka_unit_test(test_what_was_sent_twice_is_copied),
        cmocka_unit_test(test_what_is_made_here_is_copied),
        cmocka_unit_test(test_what_the_program_pins),
        cmocka_unit_test(test_no_context),
        cmocka_unit_test(test_a_larger_tensor_is_registered_again),
        cmocka_unit_test(test_a_copy_is_waited_for),
        cmocka_unit_test(test_other_copies_are_waited_for),
        cmocka_unit_test(test_copies_back_are_waited_for),
        cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_a_copy_of_what_was_not_granted),
        cmocka_unit_test(test_hazard),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_a_forked_child),
        cmocka_unit_test(test_a_captured_segment_stays),
        cmocka_unit_test(test_a_batch_of_copies_stays),
        cmocka_unit_test(test_a_copy_that_failed),
        cmocka_unit_test(test_more_streams_than_events),
        cmocka_unit_test(test_unused_ones_are_given_back),
        cmocka_unit_test(test_the_end),
        /* Whatever comes to lie there later is not pinned either. */
        cmocka_unit_test(test_what_lies_where_one_was_lost),
        cmocka_unit_test(test_no_offence),
    };
    const struct CMUnitTest hazard[] = {cmocka_unit_test(test_a_copy_is_waited_for),
                                        cmocka_unit_test(test_hazard)};
    const struct CMUnitTest sticks[] = {cmocka_unit_test(test_an_error_sticks)};
    const struct CMUnitTest fails[] = {cmocka_unit_test(test_registering_fails)};
    const struct CMUnitTest lost[] = {cmocka_unit_test(test_many_are_lost)};
    const struct CMUnitTest waits[] = {cmocka_unit_test(test_much_waits)};
    const struct CMUnitTest off[] = {cmocka_unit_test(test_nothing_is_pinned)};
    const struct CMUnitTest elsewhere[] = {cmocka_unit_test(test_bound_elsewhere)};
    const struct CMUnitTest unknown[] = {cmocka_unit_test(test_an_unknown_copy)};
    const char *what = argc > 1 ? argv[1] : "all";
    own_path = argv[0];
    if (strcmp(what, "end") == 0) {
        end_in_flight();
        if (strcmp(argv[2], "kill") == 0)
            raise(SIGKILL);
        if (strcmp(argv[2], "_exit") == 0)
            _exit(0);
        return 0;
    }
    worker_start();
    if (strcmp(what, "off") == 0)
        return cmocka_run_group_tests(off, NULL, NULL);
    if (strcmp(what, "elsewhere") == 0)
        return cmocka_run_group_tests(elsewhere, NULL, NULL);
    if (strcmp(what, "unknown") == 0)
        return cmocka_run_group_tests(unknown, NULL, NULL);
    warm_up();
    if (strcmp(what, "hazard") == 0)
        return cmocka_run_group_tests(hazard, NULL, NULL);
    if (strcmp(what, "sticks") == 0)
        return cmocka_run_group_tests(sticks, NULL, NULL);
    if (strcmp(what, "fails") == 0)
        return cmocka_run_group_tests(fails, NULL, NULL);
    if (strcmp(what, "lost") == 0)
        return cmocka_run_group_tests(lost, NULL, NULL);
    if (strcmp(what, "waits") == 0)
        return cmocka_run_group_tests(waits, NULL, NULL);
    return cmocka_run_group_tests(all, NULL, NULL);
}
