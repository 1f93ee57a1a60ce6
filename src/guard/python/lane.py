# SPDX-License-Identifier: Apache-2.0
"""The guard's part in Python: the lane, on which batches travel from a DataLoader's workers to their trainer (docs/lane.md).

This text is inside the preload library, which runs it as the module _shmguard (../python-part.c), under the interpreter's lock and in the
main thread. It imports nothing that is not there already, and changes nothing that it does not know. The time to compile it is what the
lane costs a trainer, so it is short. Given by the library:

    memory(address, size)           those bytes
    widen(fd)                       makes a pipe as large as it may be, and returns its size in bytes
    unread(fd)                      bytes that are in a pipe
    count(taken, by_value, others)  a batch is being sent, with so many bytes in the message and so many in shared memory
    decline(why)                    says why there is no lane in this process
"""
import io
import os
import sys
from pickle import Pickler, loads

memory, widen, unread, count, decline = map(globals().get, ("memory", "widen", "unread", "count", "decline"))
modules = sys.modules

WHY_PYTHON, WHY_TORCH, WHY_TRAINER = 1, 2, 3
FORMAT = 1  # of the messages; a worker sends them only to a trainer that has said that it reads this one
MARK = "shmguard lane"  # in the configuration that every process of multiprocessing passes on to its children


# --- In the trainer: what messages refer to. ---


def same(value):
    return value


def storage_of(data):
    torch = modules["torch"]
    return torch.UntypedStorage.from_buffer(data, dtype=torch.uint8)


def tensor_of(storage, dtype, offset, size, stride):
    return modules["torch"].empty((0,), dtype=dtype, device="cpu").set_(storage, offset, size, stride)


# --- In a worker. ---


class Batch:
    """What a worker puts into the queue in the place of a batch. It is pickled by the queue's thread, as the batch would be."""

    def __init__(self, data, dumps):
        self.data = data
        self.dumps = dumps

    def __reduce__(self):
        try:
            return loads, (self.dumps(self.data),)
        except Exception:  # PyTorch's own way, with PyTorch's own exception if there is one
            count(False, 0, 0)
            return same, (self.data,)


def lane_open(queue, workers, pickler, torch):
    """From now on the batches of this worker take the lane."""
    reductions = modules["torch.multiprocessing.reductions"]
    plain_tensor, plain_storage = reductions.reduce_tensor, reductions.reduce_storage
    Tensor, Storage, strided = torch.Tensor, torch.UntypedStorage, torch.strided
    untyped = getattr(Tensor, "untyped_storage", None) or Tensor._storage
    has_names = getattr(Tensor, "has_names", None) or (lambda tensor: False)
    new_shared = Storage._new_shared.__func__
    plain_put, writer = queue.put, queue._writer
    pipe_bytes = widen(writer.fileno())
    message_bytes = pipe_bytes // (8 * workers)
    piece_bytes = message_bytes // 2  # so that no storage takes the place of all others

    def dumps(data):
        reducers = pickler._extra_reducers
        if reducers[Storage] is not plain_storage or reducers[Tensor] is not plain_tensor:
            raise TypeError  # the program has registered its own
        # Whether the next message of every worker fits into the pipe, whatever the others do meanwhile: see docs/lane.md.
        room = 2 * unread(writer.fileno()) + 8192 <= pipe_bytes // 4 * 3
        left, others = message_bytes if room else 0, 0
        by_value = left
        storages = {}  # by the address of what PyTorch itself keeps of a storage: Python's objects for it may be several

        def reduce_tensor(tensor):
            if (type(tensor) is not Tensor or tensor.layout is not strided or tensor.requires_grad or tensor.is_nested
                    or tensor.is_quantized or not tensor.is_cpu or has_names(tensor)):
                return plain_tensor(tensor)
            storage = untyped(tensor)
            storage = storages.setdefault(storage._cdata, storage)
            return tensor_of, (storage, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

        def reduce_storage(storage):
            # Tensors of one storage are that in the trainer, too: it is sent once, and the pickler remembers it.
            nonlocal left, others
            first = storages.setdefault(storage._cdata, storage)
            if first is not storage:
                return same, (first,)
            size = storage.nbytes()
            if not 0 < size <= min(left, piece_bytes) or storage.device.type != "cpu" or storage.is_shared():
                others += size
                return plain_storage(storage)
            left -= size
            return storage_of, (memory(storage.data_ptr(), size),)

        file = io.BytesIO()
        made = pickler(file)
        made.dispatch_table.update({Storage: reduce_storage, Tensor: reduce_tensor})
        made.dump(data)
        if storages:
            count(True, by_value - left, others)
        return file.getvalue()

    def put(message, *args, **kwargs):
        if type(message) is tuple and len(message) == 2 and type(message[0]) is int:
            number, data = message
            if type(data) not in (type(None), bool, int, float, str, bytes):  # those are not worth the detour
                message = number, Batch(data, dumps)
        plain_put(message, *args, **kwargs)

    def send_bytes(message):
        # At once, also above 16 KiB, where Python writes the length separately: a worker that is killed has sent all of it, or nothing.
        size = len(message)
        if size <= 2 * message_bytes:
            writer._send(size.to_bytes(4, "big") + message)
        else:
            writer.send_bytes(message)

    def new_small(cls, size, *, device="cpu"):
        # The collate function makes its tensors in shared memory. Not those that travel by value. As there, they cannot be resized.
        if cls is not Storage or not 0 < size <= piece_bytes or str(device) != "cpu":
            return new_shared(cls, size, device=device)
        return untyped(torch.frombuffer(bytearray(size), dtype=torch.uint8))

    Storage._new_shared = classmethod(new_small)
    queue._send_bytes = send_bytes
    queue.put = put


def worker_start():
    """In every worker of a DataLoader, before it does anything else."""
    process = modules["multiprocessing.process"].current_process()
    loop, queues = modules["torch.utils.data._utils.worker"]._worker_loop, modules["multiprocessing.queues"]
    pickler = modules["multiprocessing.reduction"].ForkingPickler
    if process._target is not loop:
        return
    names = loop.__code__.co_varnames
    queue, workers = (process._args[names.index(name)] for name in ("data_queue", "num_workers"))
    if process._config.get(MARK) != (FORMAT, process._parent_pid):
        decline(WHY_TRAINER)
    elif type(queue) is not queues.Queue or queues._ForkingPickler is not pickler or pickler.__bases__ != (Pickler,):
        decline(WHY_TORCH)
    else:
        lane_open(queue, workers, pickler, modules["torch"])


class Hook:
    """In the place of the first function that a worker calls."""

    def __init__(self, function):
        self.function = function

    def __call__(self):
        try:
            worker_start()
        except Exception:
            decline(WHY_TORCH)
        return self.function()


# --- In the trainer, and in spawned workers. ---


def attend():
    """At every semaphore of multiprocessing. False: this process has no lane, and never will."""
    if (sys.implementation.name != "cpython" or not (3, 8) <= sys.version_info[:2] <= (3, 13) or "t" in sys.abiflags
            or hasattr(sys, "gettotalrefcount")):
        decline(WHY_PYTHON)
        return False
    torch, worker = modules["torch"], modules["torch.utils.data._utils.worker"]
    if any(getattr(getattr(module, "__spec__", None), "_initializing", False) for module in (torch, worker)):
        return True  # at the next semaphore, then
    handling = worker.signal_handling
    if type(handling._set_worker_signal_handlers) is not Hook:
        code = worker._worker_loop.__code__
        version = tuple(map(int, torch.__version__.split(".")[:2]))
        if (not (1, 13) <= version <= (2, 13) or not {"data_queue", "num_workers"} <= set(code.co_varnames[:code.co_argcount])
                or "_set_worker_signal_handlers" not in code.co_names):
            decline(WHY_TORCH)
            return False
        handling._set_worker_signal_handlers = Hook(handling._set_worker_signal_handlers)
    # Children learn that this process reads what they send. It says so each time, because current_process() changes.
    modules["multiprocessing.process"].current_process()._config[MARK] = FORMAT, os.getpid()
    return True
