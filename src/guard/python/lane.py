# SPDX-License-Identifier: Apache-2.0
"""The guard's part in Python: the lane, on which batches travel from a DataLoader's workers to their trainer (docs/lane.md).

This text is inside the preload library, which runs it (../python-part.c) under the interpreter's lock and in the main thread. It imports
nothing that is not there already, and changes nothing that it does not know. The time to compile it is what the lane costs a trainer, so
it is short, and what only workers need is in lane_worker.py. Given by the library:

    listen()                  where workers reach this process, or None
    take(list, worker, packet)  adds the descriptors of that packet to the list
    shut(*descriptors)        closes those that are not -1
    file_of(descriptor)       its inode and device
    memory(address, size)     a writable view of those bytes
    deliver(pipe, semaphore, message)  writes a message if the pipe has room for it at once, and the semaphore is free; whether it did
    receive(pipe, seconds)    the next message, or the size of a longer one, which is next in the pipe, or LATE, PART or HUGE
    decline(why)              says why there is no lane in this process
    worker_text()             lane_worker.py
"""
import os
import sys
from pickle import dumps, loads
from time import monotonic

listen, take, shut, file_of, memory, deliver, receive, decline, worker_text = map(
    globals().get, ("listen", "take", "shut", "file_of", "memory", "deliver", "receive", "decline", "worker_text"))
modules = sys.modules
empties = {}  # a tensor of each dtype
has_loaded = False  # this process has had a loader with workers

WHY_PYTHON, WHY_TORCH, WHY_TRAINER = 1, 2, 3
FORMAT = 1  # of the messages; a worker sends them only to a trainer that has said that it reads this one
MARK = "shmguard lane"  # in the configuration that every process of multiprocessing passes on to its children
HOME = "torch.multiprocessing.reductions"  # where messages find the functions that read them, as they find PyTorch's own

LATE, PART, HUGE = -1, -2, -3  # no message came in time; not all of its size is here, or the end is; its size is in the next eight bytes
ALIGNMENT = 64  # of a part in a segment
SIMPLE = set(map(id, (int, str, bool, type(None))))  # what an index may be, or a list of these, to go to a worker at once


def ours(error):
    """Whether this text has raised it, and not a signal handler of the program that happened to run here."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename == ours.__code__.co_filename


def aligned(size, step=ALIGNMENT):
    return -(-size // step) * step


# --- In the trainer: what messages refer to. ---


class Region:
    """Memory of a storage, for numpy."""

    def __init__(self, storage):
        self.storage = storage
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (storage.nbytes(),), "data": (storage.data_ptr(), False)}


def same(value):
    return value


def storage_of(part):
    torch = modules["torch"]
    return part if type(part) is torch.UntypedStorage else torch.UntypedStorage.from_buffer(part, dtype=torch.uint8)


def tensor_of(storage, dtype, offset, size, stride):
    # `new` makes an empty tensor in half the time of torch.empty, and lets other threads in once, not twice.
    empty = empties.get(dtype)
    if empty is None:
        empty = empties[dtype] = modules["torch"].empty((0,), dtype=dtype, device="cpu")
    return empty.new().set_(storage, offset, size, stride)


def array_of(part, dtype, shape, order):
    return modules["numpy"].asarray(Region(storage_of(part))).view(dtype).reshape(shape, order=order)


def shared_storage(Storage, descriptor, size):
    """As PyTorch does: what arrives again while it is alive here is the same storage."""
    reductions = modules[HOME]
    file = file_of(descriptor)
    storage = reductions.storage_from_cache(Storage, file)
    if storage is None:
        storage = Storage._new_shared_fd_cpu(descriptor, size)
        reductions.shared_cache[file] = reductions.StorageWeakRef(storage)
    return storage


def message_of(stream, layout, whole, worker, packet):
    """A batch. Of a short message, `stream` is the pickle, and `layout` has for each part that the pickle refers to its bytes, or the place
    of its descriptor in the packet and its size. Of a long one, both are sizes: the packet's first segment, of the size `whole`, holds the
    layout, the pickle and the parts, and the layout has a part's size and None."""
    descriptors = []
    try:
        if packet:
            take(descriptors, worker, packet)
        Storage = modules["torch"].UntypedStorage
        if whole:
            storage = Storage._new_shared_fd_cpu(descriptors[0], whole)
            there = memory(storage.data_ptr(), whole)
            end = layout + stream
            layout, stream = loads(there[:layout]), there[layout:end]

        def parts():
            nonlocal end
            for part in layout:
                if type(part) is tuple:
                    place, size = part
                    descriptor, descriptors[place] = descriptors[place], -1  # whatever interrupts us, it is not closed twice
                    try:
                        shared = shared_storage(Storage, descriptor, size)
                    finally:
                        shut(descriptor)
                    yield shared
                elif whole:
                    start = aligned(end)
                    end = start + part
                    yield there[start:end]
                else:
                    yield part

        return loads(stream, buffers=parts())
    finally:
        shut(*descriptors)


FOR_MESSAGES = same, storage_of, tensor_of, array_of, message_of


# --- In a worker. ---


def worker_compile():
    if "worker_start" not in globals():
        exec(compile(worker_text(), ours.__code__.co_filename, "exec"), globals())


class Hook:
    """In the place of the first function that a worker calls."""

    def __init__(self, function):
        self.function = function

    def __call__(self):
        try:
            process, loop = modules["multiprocessing.process"].current_process(), modules["torch.utils.data._utils.worker"]._worker_loop
            if process._target is loop:
                worker_compile()
                worker_start(process, process._args[loop.__code__.co_varnames.index("data_queue")])
        except Exception as error:
            if not ours(error):
                raise
            decline(WHY_TORCH)
        return self.function()


# --- In a trainer: its end of the queues. ---


def queues_open(Queue, Empty, Resume):
    """Classes for the queues of a loader. Without them each batch costs a trainer the changes to and from the thread of the queue that asks
    its worker for the next, and a poll object."""

    def is_simple(message):
        """Whether it can be pickled here and now: nothing of the program is called, no reducer is needed, and nothing can fail."""
        if type(message) is not tuple or len(message) != 2:
            return message is None or type(message) is Resume
        index = message[1]
        kind = type(index)
        return id(kind) in SIMPLE or (kind is list or kind is tuple) and SIMPLE.issuperset(map(id, map(type, index)))

    class OurQueue(Queue):
        def __reduce__(self):  # to a process that is spawned
            return Queue.__new__, (Queue,), self.__getstate__()

    class IndexQueue(OurQueue):
        """To a worker. The queue's thread is started for the first message that the pipe has no room for, and writes all that follow."""

        def put(self, message, block=True, timeout=None):
            if self._thread is None and not self._closed and is_simple(message) and self._sem.acquire(False):
                if deliver(self._writer.fileno(), self._wlock._semlock.handle, dumps(message)):
                    return
                self._sem.release()
            super().put(message, block, timeout)

        def close(self):
            thread = self._thread
            super().close()
            if thread is None:  # which would do it
                self._reader.close()
                self._writer.close()

    class ResultQueue(OurQueue):
        """From all workers."""

        def get(self, block=True, timeout=None):
            if not block or timeout is None or self._closed:
                return super().get(block, timeout)
            end = monotonic() + timeout
            if not self._rlock.acquire(True, timeout):
                raise Empty
            try:
                message = receive(self._reader.fileno(), max(0, end - monotonic()))
                if type(message) is int:
                    message = self.rest(message)
                self._sem.release()
            finally:
                self._rlock.release()
            return loads(message)

        def rest(self, size):
            if size == LATE:
                raise Empty
            if size == PART:
                return self._reader._recv_bytes().getvalue()
            if size == HUGE:
                size = int.from_bytes(self._reader._recv(8).getvalue(), "big")
            return self._reader._recv(size).getvalue()

    return IndexQueue, ResultQueue


def queues_install(Iterator, Resume, queues, connections):
    """Before a loader asks its workers for the first batch, its queues become ours, unless the program has its own."""
    plain_reset, Queue, pickler = Iterator._reset, queues.Queue, queues._ForkingPickler
    if (not all(function.__globals__ is vars(queues) for function in (Queue.put, Queue.get)) or pickler.loads is not loads
            or pickler.dumps.__func__.__globals__ is not vars(modules["multiprocessing.reduction"])):
        return
    ours_of = dict(zip(("_index_queues", "_worker_result_queue"), queues_open(Queue, queues.Empty, Resume)))

    def reset(self, *args, **kwargs):
        global has_loaded
        has_loaded = True
        for name, Ours in ours_of.items():
            found = getattr(self, name, ())
            for queue in found if type(found) is list else (found,):
                if type(queue) is Queue and type(queue._reader) is type(queue._writer) is connections.Connection:
                    queue.__class__ = Ours
        return plain_reset(self, *args, **kwargs)

    Iterator._reset = reset


# --- In the trainer, and in spawned workers. ---


def install():
    """Whether this process may have a lane."""
    if sys.implementation.name != "cpython" or "t" in sys.abiflags or hasattr(sys, "gettotalrefcount"):
        decline(WHY_PYTHON)
        return False
    torch, worker, loader = map(modules.get, ("torch", "torch.utils.data._utils.worker", "torch.utils.data.dataloader"))
    if any(getattr(getattr(module, "__spec__", None), "_initializing", False) for module in (torch, worker, loader)):
        return True  # at the next semaphore, then
    handling = worker.signal_handling
    if type(handling._set_worker_signal_handlers) is not Hook:
        code = worker._worker_loop.__code__
        version = tuple(map(int, torch.__version__.split(".")[:2]))
        if (not (1, 13) <= version <= (2, 13) or "data_queue" not in code.co_varnames[:code.co_argcount]
                or "_set_worker_signal_handlers" not in code.co_names):
            decline(WHY_TORCH)
            return False
        for function in FOR_MESSAGES:
            function.__module__, function.__qualname__ = HOME, "_shmguard_" + function.__name__
            setattr(modules[HOME], function.__qualname__, function)
        handling._set_worker_signal_handlers = Hook(handling._set_worker_signal_handlers)
        if loader:
            queues_install(loader._MultiProcessingDataLoaderIter, worker._ResumeIteration, modules["multiprocessing.queues"],
                           modules["multiprocessing.connection"])
    if has_loaded:
        worker_compile()  # it makes workers again and again: they inherit what each would have to do
    # Children learn that this process reads what they send. It says so each time, because current_process() changes.
    modules["multiprocessing.process"].current_process()._config[MARK] = FORMAT, os.getpid(), listen()
    return True


def attend():
    """At every semaphore of multiprocessing. False: this process has no lane, and never will."""
    try:
        return install()
    except Exception as error:
        if not ours(error):
            raise
        decline(WHY_TORCH)
        return False
