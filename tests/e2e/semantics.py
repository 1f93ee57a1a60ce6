# SPDX-License-Identifier: Apache-2.0
"""Named cases of what PyTorch's users do with shared memory. The guard must not change a byte of their results.

    python semantics.py [--methods fork,forkserver] [--strategies file_descriptor,file_system] [CASE…]

One interpreter runs all cases, because loading PyTorch takes longer than most of them. Each case prints one line: method,
strategy, name and its result (numbers and digests, nothing that differs between runs), or FAILED and why.
test_semantics.py compares the lines of plain runs with those under the guard. A case that hangs is ended, and its name
and the tracebacks of all threads are printed.
"""

import argparse
import collections
import dataclasses
import errno
import faulthandler
import gc
import hashlib
import os
import pickle
import signal
import sys
import time
import traceback
from multiprocessing import managers, shared_memory
from multiprocessing.reduction import ForkingPickler

import numpy
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

MIB = 1 << 20
LARGE = MIB // 4  # floats: 1 MiB
SIZES = (1, 1000, 131071, 131072, LARGE, LARGE + 3, 2 * LARGE)  # floats; some are around the guard's threshold
SECONDS = 240  # per case
CASES = {}
NEED_NAMES = set()  # cases that open segments by name, whatever the strategy


def case(function):
    CASES[function.__name__] = function
    return function


def needs_names(function):
    NEED_NAMES.add(function.__name__)
    return function


def digest(*values):
    """A digest of all tensors in nested values."""
    total = hashlib.sha256()

    def add(value):
        if isinstance(value, torch.Tensor):
            total.update(f"{value.dtype}{tuple(value.shape)}".encode())
            total.update(value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        elif isinstance(value, dict):
            for key in sorted(value):
                total.update(repr(key).encode())
                add(value[key])
        elif isinstance(value, (list, tuple)):
            total.update(f"{type(value).__name__}{len(value)}".encode())
            for item in value:
                add(item)
        else:
            total.update(repr(value).encode())

    add(values)
    return total.hexdigest()[:16]


def numbers(start, words=LARGE, dtype=torch.float32):
    return torch.arange(words, dtype=torch.int64).mul_(31).add_(start * 7919).remainder_(65521).to(dtype)


class Job:
    """How a case starts processes: the start method and the sharing strategy."""

    def __init__(self, method, strategy):
        self.method = method
        self.strategy = strategy
        self.context = mp.get_context(method)

    def start(self, target, *arguments):
        process = self.context.Process(target=enter, args=(self.strategy, target, arguments), daemon=True)
        process.start()
        return process

    def loader(self, dataset, workers=2, **options):
        if "batch_sampler" not in options:
            options.setdefault("batch_size", 4)
        return DataLoader(dataset, num_workers=workers, multiprocessing_context=self.method,
                          worker_init_fn=Strategy(self.strategy), **options)


class Strategy:
    """Sets the strategy in each worker: a worker that is not forked starts with the default."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *_):
        torch.set_num_threads(1)
        mp.set_sharing_strategy(self.name)


def enter(strategy, target, arguments):
    Strategy(strategy)()
    target(*arguments)


def wait_for(process):
    """Not join with a timeout: that also waits for torch_shm_manager, which inherits a pipe from a spawned process."""
    deadline = time.monotonic() + 20
    while process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)


def ended(*processes):
    for process in processes:
        wait_for(process)
    codes = [process.exitcode for process in processes]
    assert all(code == 0 for code in codes), f"exit codes {codes}"


# --- Models and tensors shared in place ---------------------------------------------------------------------------


def hogwild_worker(model, counter, lock, barrier, results, rank):
    generator = torch.Generator().manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(40):
        x = torch.randn(16, 8, generator=generator)
        optimizer.zero_grad()
        (model.read(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        with lock:
            counter += 1
    barrier.wait(120)  # no writes after this: all processes must see the same
    results.put((rank, digest(list(model.state_dict().values())), int(counter[0]), int(counter[-1])))
    barrier.wait(120)


class Wide(torch.nn.Module):
    """A model with shared parameters on both sides of the threshold."""

    def __init__(self):
        super().__init__()
        self.read = torch.nn.Linear(8, 1)
        self.table = torch.nn.Embedding(4096, 128)


@case
def hogwild(job):
    torch.manual_seed(0)
    model = Wide()
    model.share_memory()
    x = torch.randn(256, 8)

    def loss():
        return float((model.read(x) - x.sum(1, keepdim=True)).pow(2).mean().detach())

    before = loss()
    counter = torch.zeros(LARGE, dtype=torch.int64).share_memory_()
    lock, barrier, results = job.context.Lock(), job.context.Barrier(3), job.context.Queue()
    processes = [job.start(hogwild_worker, model, counter, lock, barrier, results, rank) for rank in range(3)]
    seen = sorted(results.get(timeout=120) for _ in processes)
    ended(*processes)
    mine = digest(list(model.state_dict().values()))
    assert {line[1] for line in seen} == {mine}, "a process does not see the others' updates"
    assert loss() < before / 10, (before, loss())
    assert all(parameter.is_shared() for parameter in model.parameters())
    return [line[2:] for line in seen], int(counter.min()), int(counter.max())


def write_back(tensors, mine, theirs):
    for tensor in tensors:
        tensor[: tensor.numel() // 2] = 5
    mine.set()
    assert theirs.wait(120)
    assert all(int(tensor[-1]) == 7 for tensor in tensors)


@case
def share_memory_both_ways(job):
    tensors = [torch.zeros(words).share_memory_() for words in SIZES]
    mine, theirs = job.context.Event(), job.context.Event()
    process = job.start(write_back, tensors, theirs, mine)
    assert theirs.wait(120)
    halves = [int(tensor.sum()) for tensor in tensors]
    for tensor in tensors:
        tensor[tensor.numel() // 2:] = 7
    mine.set()
    ended(process)
    return halves, digest(tensors)


def fill(tensor):
    tensor.fill_(4)
    return tensor.add(1)


@case
def pool_of_processes(job):
    buffers = [torch.zeros(words) for words in SIZES]
    with job.context.Pool(2, Strategy(job.strategy)) as pool:
        results = pool.map(fill, buffers, 1)
        pool.close()
        pool.join()
    return digest(buffers), digest(results)


# --- Queues -------------------------------------------------------------------------------------------------------


def double(inbox, outbox):
    while True:
        tensors = inbox.get()
        if tensors is None:
            return
        outbox.put([tensor * 2 if tensor.dtype != torch.bool else ~tensor for tensor in tensors])


@case
def queues_in_both_directions(job):
    inbox, outbox = job.context.Queue(), job.context.Queue()
    process = job.start(double, inbox, outbox)
    results = []
    for step in range(6):
        for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16):
            sent = [numbers(step, words, dtype) for words in SIZES]
            inbox.put(sent)
            got = outbox.get(timeout=120)
            if dtype == torch.float32:
                assert all(torch.equal(one * 2, other) for one, other in zip(sent, got)), step
            if step % 3 == 0:
                results.append(digest(got))
    inbox.put(None)
    ended(process)
    return results


def echo(connection):
    for _ in range(6):
        connection.send(connection.recv().mul_(3))
    assert connection.recv() == "end"


@case
def pipe(job):
    here, there = job.context.Pipe()
    process = job.start(echo, there)
    results = []
    for words in SIZES[:6]:
        sent = numbers(words, words)
        here.send(sent)
        got = here.recv()
        results.append((digest(got), torch.equal(sent, got)))  # it wrote to the memory that we sent
    here.send("end")
    ended(process)
    return results


def resend(inbox, outbox, done):
    outbox.put(inbox.get())
    assert done.wait(120)


def stamp(inbox, done):
    for place, tensor in enumerate(inbox.get()):
        tensor.add_(place + 1)
    done.set()


@case
def resent_by_the_receiver(job):
    first, second, done = job.context.Queue(), job.context.Queue(), job.context.Event()
    processes = [job.start(resend, first, second, done), job.start(stamp, second, done)]
    tensors = [numbers(words, words) for words in SIZES]
    before = [tensor.clone() for tensor in tensors]
    first.put(tensors)
    assert done.wait(120)
    ended(*processes)
    assert all(torch.equal(tensor, old + place + 1) for place, (tensor, old) in enumerate(zip(tensors, before)))
    return digest(tensors)


def write_slices(inbox, outbox):
    whole, rows, column, turned = inbox.get()
    one_memory = len({tensor.storage().data_ptr() for tensor in (whole, rows, column, turned)}) == 1
    rows.fill_(-1)
    column.fill_(-2)
    turned[3].fill_(-3)
    outbox.put((one_memory, digest(whole)))


@case
def slices_and_views(job):
    results = []
    for side in (16, 512, 700):
        inbox, outbox = job.context.Queue(), job.context.Queue()
        process = job.start(write_slices, inbox, outbox)
        whole = numbers(side, side * side).view(side, side)
        inbox.put((whole, whole[2:5], whole[:, 1], whole.t()))
        one_memory, theirs = outbox.get(timeout=120)
        ended(process)
        assert one_memory and theirs == digest(whole)
        results.append(theirs)
    return results


def same_twice(inbox, outbox):
    one, other = inbox.get(), inbox.get()
    one[0] = 123
    outbox.put((one.data_ptr() == other.data_ptr(), float(other[0]), digest(other)))


@case
def sent_twice_is_one_memory(job):
    results = []
    for words in (10, LARGE, LARGE + 1):
        inbox, outbox = job.context.Queue(), job.context.Queue()
        process = job.start(same_twice, inbox, outbox)
        tensor = numbers(words, words)
        inbox.put(tensor)
        inbox.put(tensor)
        results.append(outbox.get(timeout=120))
        ended(process)
        assert float(tensor[0]) == 123
    return results


def produce(outbox, got, first, count):
    for number in range(first, first + count):
        outbox.put([numbers(number, words) for words in SIZES])
    assert got.wait(120)


@case
def tensors_outlive_their_producer(job):
    """The producer exits or is killed after its tensors have arrived; then others recycle what they can."""
    kept = {}
    for end in ("exit", "kill"):
        outbox, got = job.context.Queue(), job.context.Event()
        process = job.start(produce, outbox, got, 100 * len(kept), 3)
        kept[end] = [outbox.get(timeout=120) for _ in range(3)]
        if end == "exit":
            got.set()
            ended(process)
        else:
            os.kill(process.pid, signal.SIGKILL)
            wait_for(process)
    outbox, got = job.context.Queue(), job.context.Event()
    process = job.start(produce, outbox, got, 500, 8)
    fresh = [digest(outbox.get(timeout=120)) for _ in range(8)]
    got.set()
    ended(process)
    for first, end in ((0, "exit"), (100, "kill")):
        for number, tensors in enumerate(kept[end], first):
            assert all(torch.equal(tensor, numbers(number, words)) for tensor, words in zip(tensors, SIZES)), (end, number)
    kept["kill"][0][4].fill_(9)  # and we may write to them
    return digest(kept), fresh


def inspect(module, outbox):
    weight = module.weight
    outbox.put((type(weight).__name__, weight.requires_grad, weight.is_shared(), digest(weight)))
    with torch.no_grad():
        weight.mul_(0.5)
    outbox.put("done")


@case
def modules_and_parameters(job):
    torch.manual_seed(1)
    module = torch.nn.Linear(600, 600)
    outbox = job.context.Queue()
    module.share_memory()
    process = job.start(inspect, module, outbox)
    seen = outbox.get(timeout=120)
    assert outbox.get(timeout=120) == "done"
    ended(process)
    return seen, digest(module.weight)


# --- DataLoaders --------------------------------------------------------------------------------------------------


class Samples(Dataset):
    def __init__(self, count=24, words=LARGE // 2, offset=0):
        self.count, self.words, self.offset = count, words, offset

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        return numbers(self.offset + index, self.words)


@case
def loaders_interleaved(job):
    loaders = [job.loader(Samples(words=words, offset=1000 * place)) for place, words in enumerate((100, LARGE // 2, LARGE))]
    held = []
    for batches in zip(*loaders):
        held.append(batches)
        if len(held) > 3:
            del held[0]
    whole = [list(loader) for loader in loaders[:2]]
    for place, batches in enumerate(whole):
        for step, batch in enumerate(batches):
            for row, sample in enumerate(batch):
                assert torch.equal(sample, numbers(1000 * place + 4 * step + row, sample.numel())), (place, step, row)
    return digest(held), digest(whole)


Point = collections.namedtuple("Point", "x y")


class Nested(Samples):
    def __getitem__(self, index):
        tensor = super().__getitem__(index)
        return {"point": Point(tensor, -tensor[:7]), "list": [tensor[: LARGE // 4] * 2, index, float(index)], "name": f"sample {index}",
                "deep": {"pair": (tensor[:3], [tensor.to(torch.int16)])}}


@case
def nested_collates(job):
    return [(sorted(batch), type(batch["point"]).__name__, batch["name"], digest(batch))
            for batch in job.loader(Nested(12), batch_size=3)]


def collate_views(samples):
    whole = torch.stack(samples)
    return {"whole": whole, "tail": whole[1:], "turned": whole.t(), "strided": whole[:, ::2]}


@case
def collate_that_returns_views(job):
    results = []
    for batch in job.loader(Samples(16), collate_fn=collate_views):
        results.append(digest(batch))
        batch["tail"].fill_(-1)
        assert bool((batch["whole"][1:] == -1).all()) and bool((batch["turned"][:, 1:] == -1).all())
        results.append(digest(batch))
    return digest(results)


def describe(value, storages):
    """Everything about a batch that a program can see of it; `storages` numbers those that were met."""
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_nested and not value.is_quantized:
        storage = value.untyped_storage() if hasattr(value, "untyped_storage") else value.storage().untyped()
        place = storages.setdefault(storage.data_ptr() if storage.nbytes() else -1, len(storages))
        words = f"{type(value).__name__} {value.dtype} {tuple(value.shape)} {value.stride()} {value.storage_offset()}"
        return (words, value.requires_grad, value.is_leaf, storage.nbytes(), place, value._is_view(),
                hashlib.sha256(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()).hexdigest()[:8])
    if isinstance(value, dict):
        return type(value).__name__, [(key, describe(value[key], storages)) for key in value]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [describe(item, storages) for item in value]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, describe(vars(value), storages)
    if type(value).__module__ == "numpy":
        return repr(value.dtype), value.shape, value.strides, value.flags.writeable, value.flags.owndata or value.nbytes >= 1 << 19, \
            hashlib.sha256(value.tobytes()).hexdigest()[:8]
    if isinstance(value, torch.UntypedStorage):
        return "storage", value.nbytes(), storages.setdefault(value.data_ptr(), len(storages))
    return repr(value)


@dataclasses.dataclass
class Record:
    picture: torch.Tensor
    label: torch.Tensor
    box: Point


class Tagged(torch.Tensor):
    """A tensor of the program's own class, with an attribute: 1.13 cannot send one without."""


def tagged(index):
    tensor = numbers(index, 30).as_subclass(Tagged)
    tensor.tag = index
    return tensor


DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64, torch.complex128)


def kinds(index):
    """By name: what a program may put into a batch, made when it is called. Small enough, most of it, to travel within the message."""
    base = numbers(index, 240)
    cube = base.view(2, 4, 5, 6)
    grown = numbers(index, 64).requires_grad_()
    return {
        "dtypes": lambda: [numbers(index, 33).to(dtype) for dtype in DTYPES],
        "sizes": lambda: [numbers(index, words) for words in (1, 0, 255, 4096, 8191, 8192, 8193, 16384, 40000, LARGE)],
        "empty": lambda: [torch.empty(0, 3), torch.empty(2, 0, 5, dtype=torch.int64), torch.tensor(7.5 + index), base[3:3]],
        "views": lambda: [base, base[5:17], base[::3], base[5:17]],
        "strides": lambda: [cube, cube.permute(3, 1, 0, 2), cube.transpose(0, 3), cube[1, :, 2:4], base[:1].expand(7, 9)],
        "channels_last": lambda: cube.contiguous(memory_format=torch.channels_last),
        "of_a_large_one": lambda: numbers(index)[10:20],
        "again": lambda: [base, base, {"base": base}],
        "gradient": lambda: [grown, torch.nn.Parameter(numbers(index, 10)), torch.nn.Parameter(torch.arange(3), requires_grad=False), grown],
        "shared": lambda: numbers(index, 50).share_memory_(),
        "subclass": lambda: tagged(index),
        "storage": lambda: [base.untyped_storage() if hasattr(base, "untyped_storage") else base.storage().untyped(), base],
        "record": lambda: Record(base[:100], torch.tensor([index]), Point(base[7:9], index)),
        "packed": lambda: torch.nn.utils.rnn.pack_sequence([base[:5], base[:3]]),
        "ordered": lambda: collections.OrderedDict(b=base[:4], a=base[4:8]),
        "arrays": lambda: [base.numpy(), numbers(index, 12).numpy().reshape(3, 4).T, numpy.float32(index)],
        "large_arrays": lambda: [numbers(index).numpy(), numbers(index).numpy().reshape(2, -1).T, numbers(index).numpy()[::2],
                         numbers(index).numpy().astype(">f4"), numbers(index).numpy().view("datetime64[s]")],
        "plain": lambda: [None, True, index, float(index), "text", b"bytes" * 9000, {1, 2}, range(3), ...],
    }


class Kinds(Dataset):
    def __init__(self, name):
        self.name = name

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return kinds(index)[self.name]()


def only(samples):
    return samples[0]


@case
def batches_of_every_kind(job):
    results = {}
    for name in kinds(0):
        if job.method != "fork" and name not in ("sizes", "views", "gradient"):  # each takes new workers, which load PyTorch afresh
            continue
        kept = list(job.loader(Kinds(name), batch_size=1, collate_fn=only, prefetch_factor=3))
        results[name] = [describe(batch, {}) for batch in kept]
    return hashlib.sha256(repr(results).encode()).hexdigest()[:16] if results else "nothing"


class Unusual(Kinds):
    """Layouts that are not dense; a description of them is what they hold."""

    def __getitem__(self, index):
        base = numbers(index, 12).view(3, 4)
        return {"coo": base.to_sparse(), "quantised": torch.quantize_per_tensor(base, 2.0, 3, torch.quint8),
                "meta": torch.empty(3, 4, device="meta")}[self.name]


@case
def batches_of_unusual_tensors(job):
    results = []
    for name in ("coo", "quantised", "meta"):
        try:
            results.append([(str(batch.layout), batch.device.type, str(batch.dtype), "" if batch.is_meta else digest(batch.to_dense()))
                            for batch in job.loader(Unusual(name), batch_size=1, collate_fn=only, timeout=2)])
        except (RuntimeError, NotImplementedError) as error:  # what this version cannot send
            traceback.clear_frames(error.__traceback__)
            results.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    return results


def written_to(batch):
    """Each tensor of a batch is written to in turn, and all are looked at: who shares memory with whom?"""
    seen = []
    for place, tensor in enumerate(batch):
        if tensor.numel() > 0:
            tensor.reshape(-1)[0] = -place - 1.0
        seen.append(digest(batch))
    return seen


@case
def aliases_within_a_batch(job):
    return digest([written_to(batch) for name in ("views", "strides") for batch in
                   job.loader(Kinds(name), batch_size=1, collate_fn=only)])


class Uneven(Samples):
    def __getitem__(self, index):
        return torch.zeros(5 - index % 2), torch.zeros(3 + index % 2)


@case
def collate_that_fails(job):
    try:
        list(job.loader(Uneven()))
    except RuntimeError as error:
        traceback.clear_frames(error.__traceback__)
        return [line for line in str(error).splitlines() if line.startswith("RuntimeError")]
    raise AssertionError("no exception came")


def rebuild_doubled(values):
    return torch.tensor(values) * 2


def reduce_doubled(tensor):
    return rebuild_doubled, (tensor.tolist(),)


class Doubling(Kinds):
    def __getitem__(self, index):
        ForkingPickler.register(torch.Tensor, reduce_doubled)
        return torch.arange(4) + index


@case
def reducer_of_the_program(job):
    return [batch.tolist() for batch in job.loader(Doubling(""), batch_size=1, collate_fn=only)]


@case
def batches_that_are_sent_on(job):
    """Small tensors from a loader are shared with another process as any other."""
    results = []
    there, back = job.context.SimpleQueue(), job.context.SimpleQueue()
    process = job.start(add_one_to_all, there, back)
    for batch in job.loader(Kinds("views"), batch_size=1, collate_fn=only):
        there.put(batch)
        assert back.get() is True
        results.append((digest(batch), batch[0].is_shared()))
    there.put(None)
    wait_for(process)
    return results


def add_one_to_all(orders, answers):
    for batch in iter(orders.get, None):
        batch[0].add_(1)
        answers.put(True)


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for index in range(worker.id, 23, worker.num_workers):
            yield index, numbers(index, 1000 + index * 20000)


@case
def iterable_dataset(job):
    alone = [(int(index), digest(tensor)) for index, tensor in job.loader(Stream(), workers=3, batch_size=None)]
    ragged = [digest(batch) for batch in job.loader(Stream(), batch_size=5, collate_fn=list)]
    return alone, ragged


class Ragged:
    """A batch sampler: 1 to 13 samples, so that batches are on both sides of the threshold."""

    def __iter__(self):
        first = 0
        for size in (1, 2, 13, 5, 1, 8, 3, 12, 1, 1):
            yield range(first, first + size)
            first += size


@case
def variable_batch_sizes(job):
    return [(len(batch), digest(batch)) for batch in job.loader(Samples(47, words=60000), workers=3, batch_sampler=Ragged())]


@case
def persistent_workers(job):
    """The workers stay the same in all epochs, and a batch kept from one epoch stays intact in the next."""
    loader = job.loader(Samples(16), persistent_workers=True)
    kept, epochs = [], []
    for _ in range(4):
        batches = list(loader)
        epochs.append(digest(batches))
        kept.append(batches[1])
    assert len(set(epochs)) == 1 and all(torch.equal(kept[0], batch) for batch in kept)
    return epochs[0]


class Faulty(Samples):
    def __getitem__(self, index):
        if index == 9:
            raise KeyError("no such sample")
        return super().__getitem__(index)


@case
def exception_in_a_worker(job):
    seen = []
    try:
        for batch in job.loader(Faulty()):
            seen.append(digest(batch))
    except KeyError as error:
        traceback.clear_frames(error.__traceback__)  # the frames keep the loader alive, in a cycle
        return len(seen), "no such sample" in str(error), "worker process 0" in str(error)
    raise AssertionError("no exception came")


@case
def abandoned_iteration(job):
    results = []
    for _ in range(3):
        for batch in job.loader(Samples()):
            results.append(digest(batch))
            break
    return results


def read_on(iterator, results):
    results.put([digest(next(iterator)) for _ in range(8)])


@case
def fork_of_a_trainer_reads_on(job):
    """A child goes on where its parent was, and takes what no process took for what it is."""
    results = []
    for words in (100, LARGE // 2):
        iterator = iter(job.loader(Samples(48, words)))
        kept = [next(iterator) for _ in range(2)]
        answers = mp.get_context("fork").SimpleQueue()
        child = mp.get_context("fork").Process(target=read_on, args=(iterator, answers))
        child.start()
        results.append(answers.get())
        ended(child)
        results.append(digest(kept))
        for worker in iterator._workers:  # they wait for orders of the child
            worker.terminate()
    return results


@case
def pinned(job):
    if not torch.cuda.is_available():
        return "skipped: no CUDA"
    return [(batch.is_pinned(), digest(batch)) for batch in job.loader(Samples(), pin_memory=True)]


@case
def train(job):
    """A complete small training: the final weights must be identical to the last bit."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = job.loader(Samples(64, words=512 * 64), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(3))
    for _ in range(2):
        for batch in loader:
            loss = (model(batch.view(-1, 512) / 65521) - 1).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return digest(list(model.state_dict().values()))


# --- Python's own shared memory -----------------------------------------------------------------------------------


def attach_and_write(names, results):
    while True:
        name = names.get()
        if name is None:
            return
        there = shared_memory.SharedMemory(name)
        results.put((there.size, bytes(there.buf[:3]), hashlib.sha256(there.buf).hexdigest()[:12]))
        there.buf[there.size - 1] = 77
        there.close()
        results.put("written")


@case
@needs_names
def python_shared_memory(job):
    results = []
    names, answers = job.context.Queue(), job.context.Queue()
    process = job.start(attach_and_write, names, answers)
    for size in (1, 100, 4095, 4096, 4097, 524287, 524288, MIB + 3):
        made = shared_memory.SharedMemory(create=True, size=size)
        try:
            assert made.size == size and bytes(made.buf) == bytes(size)
            made.buf[: min(3, size)] = b"abc"[:size]
            names.put(made.name)
            results.append((size, answers.get(timeout=120), answers.get(timeout=120)))
            results.append((made.buf[size - 1], len(made.buf), os.fstat(made._fd).st_size))
        finally:
            made.close()
            made.unlink()
    names.put(None)
    ended(process)
    return results


@case
@needs_names
def python_shared_memory_errors(job):
    seen = []

    def attempt(what, **options):
        try:
            opened = shared_memory.SharedMemory(**options)
            seen.append((what, "opened", opened.size))
            opened.close()
            return opened
        except OSError as error:
            seen.append((what, type(error).__name__, errno.errorcode[error.errno]))
        except ValueError as error:
            seen.append((what, "ValueError", str(error)))

    for size in (100, MIB):
        name = f"semantics-{os.getpid()}-{size}"
        attempt("open before", name=name)
        made = shared_memory.SharedMemory(name, create=True, size=size)
        made.buf[0] = 42
        attempt("make again", name=name, create=True, size=size)
        again = shared_memory.SharedMemory(name)
        made.close()
        attempt("open a third time", name=name)
        made.unlink()
        seen.append(("after unlink", again.buf[0], again.size))
        attempt("open after unlink", name=name)
        fresh = shared_memory.SharedMemory(name, create=True, size=size // 2)
        seen.append(("a new one of the name", fresh.buf[0], fresh.size, again.buf[0]))
        again.close()
        fresh.close()
        fresh.unlink()
        try:
            fresh.unlink()
        except FileNotFoundError:
            seen.append("unlinked once")
        attempt("no size", name=name, create=True, size=0)
        attempt("a slash in it", name=f"{name}/x", create=True, size=size)
        attempt("too long", name="x" * 300, create=True, size=size)
    return seen


def change_list(name, results):
    there = shared_memory.ShareableList(name=name)
    results.put(list(there))
    there[0] = -1
    there.shm.close()


@case
@needs_names
def shareable_list(job):
    made = shared_memory.ShareableList([1, 2.5, "three", b"four", None, True, "x" * 600000])
    try:
        answers = job.context.Queue()
        process = job.start(change_list, made.shm.name, answers)
        theirs = answers.get(timeout=120)
        ended(process)
        return digest(theirs), made[0], made[2], made.shm.size, pickle.loads(pickle.dumps(made))[1]
    finally:
        made.shm.close()
        made.shm.unlink()


@case
@needs_names
def shared_memory_manager(job):
    names = []
    with managers.SharedMemoryManager(ctx=job.context) as manager:
        for size in (10, MIB):
            segment = manager.SharedMemory(size)
            segment.buf[:4] = b"here"
            names.append((segment.name, segment.size, bytes(segment.buf[:4])))
        listed = manager.ShareableList(range(5))
        total = sum(listed)
    left = []
    for name, _, _ in names:
        try:
            shared_memory.SharedMemory(name)
            left.append(name)
        except FileNotFoundError:
            pass
    return [line[1:] for line in names], total, left


# ------------------------------------------------------------------------------------------------------------------


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", default="fork")
    parser.add_argument("--strategies", default="file_descriptor")
    parser.add_argument("--no-names", action="store_true", help="leave out what opens segments by name")
    parser.add_argument("case", nargs="*", default=[])
    return parser.parse_args()


def main():
    args = options()
    torch.set_num_threads(1)
    mp.set_forkserver_preload(["torch", "torch.utils.data"])  # once, instead of in every process
    gc.freeze()  # what the imports have made is none of the garbage below, and looking at it takes longer than most cases
    failed = 0
    for method in args.methods.split(","):
        for name in args.case or CASES:  # the outermost loop: PyTorch 2.6 cannot fork for hogwild once train has run
            if args.no_names and name in NEED_NAMES:
                continue
            for strategy in args.strategies.split(","):
                mp.set_sharing_strategy(strategy)
                print(f"{method} {strategy} {name}: ", end="", flush=True)
                gc.collect()  # the processes of the next case would inherit a loader that is in a cycle, and complain
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                start = time.monotonic()
                try:
                    print(CASES[name](Job(method, strategy)), flush=True)
                except Exception as error:
                    failed += 1
                    print(f"FAILED: {type(error).__name__}: {error}", flush=True)
                    traceback.print_exc()
                faulthandler.cancel_dump_traceback_later()
                if os.environ.get("SEMANTICS_TIMES"):
                    print(f"{time.monotonic() - start:6.2f} s  {method} {strategy} {name}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
