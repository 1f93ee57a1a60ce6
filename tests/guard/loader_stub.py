# SPDX-License-Identifier: Apache-2.0
"""The guard's part in Python in any interpreter, with a loader that has the shape of PyTorch's but needs none of it.

    python loader_stub.py CASE

Prints how a storage came from a worker to its trainer, "by value" or "plain", and what else the case is about. The made-up PyTorch
moves bytes alone. Real batches are compared in tests/e2e/semantics.py.
"""

import atexit
import ctypes
import mmap
import multiprocessing
import multiprocessing.queues
import multiprocessing.reduction
import multiprocessing.synchronize
import os
import pickle
import queue
import signal
import sys
import threading
import time
import types
from multiprocessing.reduction import ForkingPickler


class Tensor:
    pass


class TypedStorage:
    pass


class UntypedStorage:
    device = types.SimpleNamespace(type="cpu")

    def __init__(self, data, way="made here"):
        self.data = data if isinstance(data, mmap.mmap) else bytearray(data)
        self.way = way
        self._cdata = id(self.data)

    def nbytes(self):
        return len(self.data)

    def data_ptr(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self.data))

    def is_shared(self):
        return isinstance(self.data, mmap.mmap)

    @classmethod
    def from_buffer(cls, data, dtype):
        return cls(data, "by value")

    @classmethod
    def _new_shared(cls, size, device="cpu"):
        return cls(bytes(size))

    @classmethod
    def _new_using_fd_cpu(cls, size):
        descriptor = os.memfd_create("stub")
        os.ftruncate(descriptor, size)
        made = cls(mmap.mmap(descriptor, size))
        made.descriptor = descriptor
        return made

    @classmethod
    def _new_shared_fd_cpu(cls, descriptor, size):
        return cls(mmap.mmap(descriptor, size), "in a segment")

    def _share_fd_cpu_(self):
        if not self.is_shared():
            shared = self._new_using_fd_cpu(self.nbytes())
            shared.data[:] = bytes(self.data)
            self.__dict__.update(shared.__dict__)
        return self.descriptor, self.nbytes()


def rebuild_storage(data):
    return UntypedStorage(data, "plain")


def reduce_storage(storage):
    return rebuild_storage, (bytes(storage.data),)


def rebuild_storage_fd(cls, descriptor, size):
    number = descriptor.detach()
    try:
        return cls._new_shared_fd_cpu(number, size)
    finally:
        os.close(number)


def reduce_tensor(tensor):
    raise TypeError("there are none")


def of_a_loader(function):
    """The library looks for the loader's file among the callers of sem_open."""
    if hasattr(function.__code__, "replace"):  # since 3.8
        function.__code__ = function.__code__.replace(co_filename="/any/where/torch/utils/data/dataloader.py")
    return function


BATCHES = [b"batch" * 100, b"x" * (8 << 20)], [b"longer" * 1000, b"y" * 3000, b"z" * (1 << 20)]


def _worker_loop(dataset, data_queue, num_workers):
    worker = sys.modules["torch.utils.data._utils.worker"]
    start = time.process_time()
    worker.signal_handling._set_worker_signal_handlers()
    if os.environ.get("STUB_COST"):
        print((time.process_time() - start) * 1e3, flush=True)
    for number, batch in enumerate(dataset):
        data_queue.put((number, [UntypedStorage(data) for data in batch]))
    data_queue.put((len(dataset), "the end"))


class Resume:
    pass


def echo(index_queue, result_queue):
    while True:
        message = index_queue.get()
        if message is None:
            break
        result_queue.put(message if type(message) is Resume else (message[0], "x" * message[1][0]))


class Iterator:
    """The queues of a loader."""

    @of_a_loader
    def __init__(self, worker, method):
        context = multiprocessing.get_context(method)
        self._worker_result_queue = context.Queue()
        self._index_queues = [context.Queue()]
        self.worker = context.Process(target=worker, args=(self._index_queues[0], self._worker_result_queue))
        self.worker.start()
        self._reset()

    def _reset(self):
        pass


def module(name, **contents):
    made = types.ModuleType(name)
    made.__dict__.update(contents)
    sys.modules[name] = made
    return made


def make_torch(version="2.13.0+stub", loop=_worker_loop):
    module("torch", __version__=version, Tensor=Tensor, UntypedStorage=UntypedStorage, strided="strided", uint8="uint8", frombuffer=None,
           storage=types.SimpleNamespace(TypedStorage=TypedStorage))
    Tensor._storage = None
    for name in ("torch.utils", "torch.utils.data", "torch.utils.data._utils"):
        module(name)
    module("torch.multiprocessing", get_sharing_strategy=lambda: "file_descriptor")
    module("torch.multiprocessing.reductions", reduce_storage=reduce_storage, reduce_tensor=reduce_tensor, reduce_typed_storage=None,
           rebuild_storage_fd=rebuild_storage_fd, shared_cache={}, storage_from_cache=lambda cls, file: None, fd_id=lambda descriptor: descriptor, StorageWeakRef=id)
    handling = types.SimpleNamespace(_set_worker_signal_handlers=lambda: None)
    module("torch.utils.data._utils.worker", _worker_loop=loop, signal_handling=handling, _ResumeIteration=Resume)
    module("torch.utils.data.dataloader", _MultiProcessingDataLoaderIter=type("_MultiProcessingDataLoaderIter", (Iterator,), {}))
    _worker_loop.__module__ = "torch.utils.data._utils.worker"
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(TypedStorage, None)


@of_a_loader
def load(method="fork"):
    """As a DataLoader does: a queue, then a worker. How small storages came; large ones come in segments if those come by value."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    worker = context.Process(target=sys.modules["torch.utils.data._utils.worker"]._worker_loop, args=(BATCHES, queue, 1))
    worker.start()
    for number, batch in enumerate(BATCHES):
        place, storages = queue.get(timeout=60)
        assert (place, [bytes(storage.data) for storage in storages]) == (number, batch)
        small, large = ({storage.way for storage in storages if (storage.nbytes() < 1 << 19) is size} for size in (True, False))
        assert large == ({"in a segment"} if small == {"by value"} else {"plain"}) and len(small) == 1, (small, large)
    assert queue.get(timeout=60) == (len(BATCHES), "the end")
    worker.join()
    assert worker.exitcode == 0
    return small.pop()


def load_in_child(method):
    print(load(method), flush=True)


def is_installed():
    return hasattr(sys.modules.get("torch.multiprocessing.reductions"), "_shmguard")


@of_a_loader
def semaphores(count=100):
    locks = [multiprocessing.Lock() for _ in range(count)]
    return "%d locks" % len(locks)


def case_fork():
    return load(), is_installed()


def case_spawn():
    return load("spawn")


def case_forkserver():
    return load("forkserver")


def case_twice():
    return load(), load(), load("spawn")


def case_old_torch():
    make_torch("1.12.1")
    return load(), is_installed()


def case_new_torch():
    make_torch("2.14.0")
    return load()


def case_other_loop():
    def _worker_loop(dataset, queue_of_data, num_workers):  # noqa: ARG001
        pass

    worker = sys.modules["torch.utils.data._utils.worker"]
    known, worker._worker_loop = worker._worker_loop, _worker_loop
    semaphores()
    worker._worker_loop = known
    return load()


def case_no_loader():
    for name in [name for name in sys.modules if name.startswith("torch")]:
        del sys.modules[name]
    return semaphores(), is_installed()


def case_progress_bar():
    """It makes semaphores, and PyTorch is there, but no loader."""
    locks = [multiprocessing.Lock() for _ in range(100)]
    time.sleep(0)
    before = is_installed()
    return len(locks), before, load()


def case_late_loader():
    """The loader is imported after the first semaphores."""
    torch = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("torch")}
    semaphores()
    before = is_installed()
    sys.modules.update(torch)
    return before, load()


def case_half_imported():
    worker = sys.modules["torch.utils.data._utils.worker"]
    loop = worker.__dict__.pop("_worker_loop")
    worker.__spec__ = types.SimpleNamespace(_initializing=True)
    semaphores()
    worker.__spec__._initializing = False
    worker._worker_loop = loop
    return load()


def case_thread():
    """The loader is made by another thread while the main thread works."""
    ways = []
    thread = threading.Thread(target=lambda: (semaphores(1), time.sleep(0.1), ways.append(load())))
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
    return ways[0]


def case_blocked_main_thread():
    """It cannot be called back: any way is right."""
    ways = []
    thread = threading.Thread(target=lambda: ways.append(load()))
    thread.start()
    thread.join()
    return ways[0] in ("by value", "plain")


def case_nested():
    """A loader in a child, which is no loader's worker."""
    for method in ("fork", "spawn"):
        load(method)
        child = multiprocessing.get_context(method).Process(target=load_in_child, args=("fork",))
        child.start()
        child.join()
        assert child.exitcode == 0
    return "done"


def case_forked():
    """os.fork, of which multiprocessing knows nothing."""
    load()
    child = os.fork()
    if child == 0:
        print(load(), flush=True)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def case_own_reducer():
    ForkingPickler.register(UntypedStorage, lambda storage: (rebuild_storage, (bytes(storage.data),)))
    return load()


def case_unpicklable():
    """A batch that cannot be sent is a batch that cannot be sent; what follows it arrives."""

    def _worker_loop(dataset, data_queue, num_workers):  # noqa: ARG001
        sys.modules["torch.utils.data._utils.worker"].signal_handling._set_worker_signal_handlers()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the queue's thread prints the exception
        data_queue.put((0, [lambda: None]))
        time.sleep(1)  # a process that ends meanwhile drops the rest of its queue
        data_queue.put((1, "the end"))

    make_torch(loop=_worker_loop)
    queue = multiprocessing.Queue()
    worker = multiprocessing.Process(target=_worker_loop, args=(b"", queue, 1))
    worker.start()
    return queue.get(timeout=60)


def case_subinterpreter():
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = __import__(name)
        except ImportError:
            continue
        made = interpreters.create()
        try:
            interpreters.run_string(made, "import multiprocessing; locks = [multiprocessing.Lock() for _ in range(10)]")
        except Exception:  # not every interpreter may load the extension
            pass
        interpreters.destroy(made)
    return load()


def case_exit():
    """A semaphore is made while the interpreter ends."""
    atexit.register(lambda: (multiprocessing.Lock(), print("ended", flush=True)))
    return load()


def case_full_queue():
    """The interpreter cannot take our call: the next semaphore asks again."""
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    add = ctypes.pythonapi.Py_AddPendingCall
    nothing = call(lambda _: 0)
    refused = []

    def fill(_):  # while one pending call runs, the others wait
        for _ in range(1000):
            if add(nothing, None) != 0:
                refused.append(True)
                break
        multiprocessing.Lock()
        return 0

    filling = call(fill)
    add(filling, None)
    while not refused:
        time.sleep(0)
    return bool(refused), load()


class Deadline(Exception):
    pass


def case_alarm():
    """A signal handler of the program raises an exception at any time: nobody swallows it."""
    lost = seen = 0

    def handler(*_):
        nonlocal ran
        ran = True
        raise Deadline

    for number in range(120):
        child = os.fork()
        if child == 0:
            ran = False
            code = 2
            signal.signal(signal.SIGALRM, handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + number * 0.00003)
                semaphores(1)
                end = time.perf_counter() + 0.02
                while time.perf_counter() < end:
                    pass
            except Deadline:
                code = 0
            os._exit(code if ran else 1)
        code = os.waitpid(child, 0)[1] >> 8
        seen += code == 0
        lost += code == 2
    return lost, seen > 100


def made_iterator(worker=echo, method="fork"):
    return sys.modules["torch.utils.data.dataloader"]._MultiProcessingDataLoaderIter(worker, method)


def case_queues():
    """What a trainer sends and receives through queues that may be ours: in order, whole, and with the exceptions of Python's own. Prints
    after which messages the thread of the queue to the worker was running."""
    iterator = made_iterator()
    put, get = iterator._index_queues[0].put, iterator._worker_result_queue.get
    threads = []
    for number, sizes in enumerate([[1], (4092 - 21,), [4096], [70000], [5 << 20], [2] * 3000, [3], [4]]):
        put((number, sizes))
        threads.append(iterator._index_queues[0]._thread is not None)
        assert get(timeout=60) == (number, "x" * sizes[0])
    put(Resume())
    assert type(get(timeout=60)) is Resume
    try:
        get(timeout=0.01)
    except queue.Empty:
        threads.append("empty")
    for number in range(100):
        put((number, [number * 100]))
    assert [get(block, timeout) for block, timeout in [(True, 60), (True, None)] * 50] == [(number, "x" * (number * 100)) for number in range(100)]
    put(None)
    iterator.worker.join()
    iterator._worker_result_queue._writer.close()
    try:
        get(timeout=60)
    except EOFError:
        threads.append("ended")
    try:
        iterator._worker_result_queue.close()
        get(timeout=1)
    except (ValueError, OSError):
        threads.append("closed")
    return threads


def long_messages(index_queue, result_queue):
    for _ in range(40):
        result_queue.put(b"x" * (4000 + 4093 - len(pickle.dumps(b"x" * 4000))))


def case_part_of_a_size():
    """A pipe without room may take the first bytes of a message, and the rest when its writer runs again."""
    iterator = made_iterator(long_messages)
    time.sleep(0.3)
    os.kill(iterator.worker.pid, signal.SIGSTOP)
    threading.Timer(1, os.kill, (iterator.worker.pid, signal.SIGCONT)).start()
    return len([iterator._worker_result_queue.get(timeout=10) for _ in range(40)])


def case_interrupted_get():
    """A signal handler runs while the trainer waits for a batch: it may raise an exception, or not."""
    iterator = made_iterator()
    put, get = iterator._index_queues[0].put, iterator._worker_result_queue.get
    ran = []
    signal.signal(signal.SIGALRM, lambda *_: ran.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    timer = threading.Timer(0.3, put, [(1, [1])])
    timer.start()
    assert get(timeout=60) == (1, "x") and len(ran) > 2

    def handler(*_):
        raise Deadline

    signal.signal(signal.SIGALRM, handler)
    try:
        get(timeout=60)
    except Deadline:
        signal.setitimer(signal.ITIMER_REAL, 0)
        put((2, [2]))
        assert get(timeout=60) == (2, "xx")
        put(None)
        return "passed on"


def case_fork_of_a_trainer():
    """A child of the trainer leaves the queues of its parent alone, and has its own."""
    first = made_iterator()
    child = os.fork()
    if child == 0:
        second = made_iterator()
        second._index_queues[0].put((0, [5]))
        code = second._worker_result_queue.get(timeout=60) != (0, "xxxxx")
        second._index_queues[0].put(None)
        second.worker.join()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    first._index_queues[0].put((0, [5]))
    assert first._worker_result_queue.get(timeout=60) == (0, "xxxxx")
    first._index_queues[0].put(None)
    return "done"


def raised(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error).__name__


def case_queue_methods():
    """What else programs call. All of it answers as Python's own queue does, also in a spawned process that replaces a worker."""
    iterator = made_iterator(method="spawn")
    to, back = iterator._index_queues[0], iterator._worker_result_queue
    seen = [raised(back.get, True, timeout) for timeout in (0, -1, 1e-9)] + [raised(back.get_nowait)]
    to.put_nowait((0, [1]))
    seen.append(raised(back.get, True, 1e6))
    to.put(None)
    iterator.worker.join()
    to.put((1, [2]))
    seen += [to.qsize(), to.empty(), to.full(), back.qsize(), back.empty()]
    worker = multiprocessing.get_context("spawn").Process(target=echo, args=(to, back))
    worker.start()
    seen.append(raised(back.get, True, 60))
    to.put(None)
    worker.join()
    to.put((2, [3]))
    to.cancel_join_thread()
    for each in to, back:
        each.close()
        each.close()
        each.join_thread()
    return [*seen, worker.exitcode, raised(to.put, None) in ("ValueError", "AssertionError")]


def put_many(to, first):
    for number in range(first, first + 500):
        to.put((number, [number % 50]))
    to.close()
    to.join_thread()


def case_two_writers():
    """A forked child writes, too, while the queue's thread of its parent writes messages in parts."""
    iterator = made_iterator()
    to, back = iterator._index_queues[0], iterator._worker_result_queue
    child = multiprocessing.get_context("fork").Process(target=put_many, args=(to, 1000))
    child.start()
    for number in range(500):
        to.put((number, [number % 50] + [0] * (2000 if number % 100 == 50 else 0)))
    got = sorted(back.get(timeout=60) for _ in range(1000))
    child.join()
    to.put(None)
    return got == [(number, "x" * (number % 50)) for number in [*range(500), *range(1000, 1500)]]


def case_dropped_queues():
    """They end with the loader, without the garbage collector: no descriptor is left."""
    import gc

    gc.disable()

    def use():
        iterator = made_iterator()
        iterator._index_queues[0].put((0, [5]))
        iterator._worker_result_queue.get(timeout=60)
        iterator._index_queues[0].put(None)
        iterator.worker.join()
        iterator._worker_result_queue.close()
        iterator._index_queues[0].close()

    use()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        use()
    kept = made_iterator()
    kept._index_queues[0].put(None)
    kept.worker.join()
    kept._index_queues[0].close()
    return len(os.listdir("/proc/self/fd")) - before, kept._index_queues[0]._reader.closed


def case_cost():
    """Milliseconds of the processor: in the trainer for its first semaphore, in its first worker, and in one that it starts after it has had a
    loader."""
    start = time.process_time()
    semaphores(1)
    time.sleep(0)
    print((time.process_time() - start) * 1e3, flush=True)
    os.environ["STUB_COST"] = "1"
    load()
    iterator = made_iterator()
    iterator._index_queues[0].put(None)
    iterator.worker.join()
    return load()


make_torch()

if __name__ == "__main__":
    print(globals()["case_" + sys.argv[1]]())
