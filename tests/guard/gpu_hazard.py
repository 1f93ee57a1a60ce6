# SPDX-License-Identifier: Apache-2.0
"""Batches of a DataLoader with pin_memory=True, copied to the GPU late and let go of early; every word is checked on the GPU.

    python3 tests/guard/gpu_hazard.py --batches 100000 [--processes N] [--workers N] [--seed N] [--seconds N]

Run it under the guard (shmguard run -- python3 tests/guard/gpu_hazard.py …) on a machine with a GPU, or plainly, to see that the test
itself is sound. Under a library that does not wait for copies (libshmguard-untracked.so, built with the tests) it must fail.

Each batch goes one of many ways: on the stream at hand or a side stream, behind a kernel that keeps the stream busy, whole or in
pieces on several streams, by another thread, blocking or not, and now and then into a graph that is replayed later. It is dropped at
once or later, in any order, some by a thread that never touched CUDA, and sometimes the trainer forks in between. One loader follows
another, with other workers, so that segments are registered and given back. Every eighth batch is one of many tensors, large and small.
The batch's number and each word's place are in the word.
"""

import argparse
import concurrent.futures
import os
import queue
import random
import sys
import threading
import time

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

WORDS = 128 * 1024  # 1 MiB: the guard recycles from half of that on
OTHERS = (WORDS // 2, 1, 100, 1000, *range(10, 50), WORDS // 8)  # words of further tensors
STRIDE = 1 << 20
GRAPHS_MAX = 6  # each keeps its segment forever
LOADERS = 8


class Numbers(Dataset):
    def __init__(self, batches, first):
        self.batches = batches
        self.first = first
        self.places = None

    def __len__(self):
        return self.batches

    def __getitem__(self, number):
        if self.places is None:
            torch.set_num_threads(1)
            self.places = torch.arange(WORDS, dtype=torch.int64)
        words = self.places + (self.first + number) * STRIDE
        return self.first + number, words, [words[:n].clone() for n in OTHERS if number % 8 == 0]


class Checker:
    """Counts words that are wrong, on the GPU, in the order of each stream."""

    def __init__(self):
        self.places = torch.arange(WORDS, dtype=torch.int64, device="cuda")
        self.wrong = {}

    def look(self, device, number, start=0):
        stream = torch.cuda.current_stream()
        counter = self.wrong.setdefault((stream.cuda_stream, number % 64), torch.zeros((), dtype=torch.int64, device="cuda"))
        counter += (device - self.places[start : start + len(device)] != number * STRIDE).any()

    def total(self):
        torch.cuda.synchronize()
        return sum(int(counter) for counter in self.wrong.values())


def copy_on(stream, batch, number, checker, delay, blocking=False, start=0, end=WORDS):
    with torch.cuda.stream(stream):
        if delay:
            torch.cuda._sleep(delay)
        checker.look(batch[start:end].to("cuda", non_blocking=not blocking), number, start)


def copy_captured(batch, number, checker, graphs):
    """A graph that reads the batch whenever it is replayed. What PyTorch itself has pinned must be kept for it: the next capture gives
    such memory back. A segment that a graph reads is never issued again, and may be dropped."""
    target = torch.zeros(WORDS, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        target.copy_(batch, non_blocking=True)
    graphs.append((graph, target, number, None if batch.is_shared() else batch))


def batches_of(args, first, batches):
    each = -(-batches // LOADERS)
    for start in range(0, batches, each):
        numbers = Numbers(min(each, batches - start), first + start)
        yield from DataLoader(numbers, batch_size=None, num_workers=args.workers, pin_memory=True, prefetch_factor=4)


def drop_all(given):
    while given.get() is not None:
        pass


def run(args, process):
    rng = random.Random(args.seed * 1000 + process)
    batches = args.batches // args.processes
    first = process * batches
    torch.cuda.init()
    streams = [torch.cuda.Stream() for _ in range(4)]
    checker = Checker()
    torch.cuda.synchronize()
    graphs, kept, done, pinned, in_place = [], [], 0, 0, 0
    children = []
    futures = []
    given = queue.SimpleQueue()
    dropper = threading.Thread(target=drop_all, args=(given,), daemon=True)
    dropper.start()
    end = time.monotonic() + args.seconds
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for number, batch, others in batches_of(args, first, batches):
            assert number == first + done, f"batch {number} came in the place of {first + done}"
            pinned += batch.is_pinned()
            in_place += batch.is_shared()
            way = rng.random()
            delay = rng.choice([0, 0, 100_000, 500_000, 2_000_000])  # cycles: up to about a millisecond
            stream = rng.choice(streams)
            if way < 0.25:
                copy_on(torch.cuda.current_stream(), batch, number, checker, delay)
            elif way < 0.60:
                copy_on(stream, batch, number, checker, delay)
            elif way < 0.70:
                half = WORDS // 2
                copy_on(streams[0], batch, number, checker, delay, start=0, end=half)
                copy_on(streams[1], batch, number, checker, delay, start=half, end=WORDS)
            elif way < 0.75:
                copy_on(stream, batch, number, checker, delay, blocking=True)
            elif way < 0.95 or len(graphs) >= GRAPHS_MAX:
                futures.append(threads.submit(copy_on, stream, batch, number, checker, delay))
            elif not futures:
                copy_captured(batch, number, checker, graphs)
            else:
                copy_on(stream, batch, number, checker, 0)
            for other in others:
                copy_on(stream, other, number, checker, delay if len(other) > 1000 else 0)
            if others and rng.random() < 0.2:
                kept.append(rng.choice(others))
            del others
            if rng.random() < 0.2:
                kept.append(batch)
            elif rng.random() < 0.1:
                given.put(batch)
            if kept and rng.random() < 0.25:
                kept.pop(rng.randrange(len(kept)))
            if rng.random() < 0.0005:
                children.append(os.fork())
                if children[-1] == 0:
                    time.sleep(0.05)
                    os._exit(0)
            other = None
            del batch
            done += 1
            if len(futures) >= 64 or (futures and rng.random() < 0.02):
                for future in futures:
                    future.result()
                futures.clear()
            if rng.random() < 0.01:  # more than so many at once wait for their copies in no training
                torch.cuda.synchronize()
                if time.monotonic() > end:
                    break
        for future in futures:
            future.result()
    given.put(None)
    dropper.join()
    for graph, target, number, _ in graphs:
        graph.replay()
        checker.look(target, number)
    wrong = checker.total()
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    return done, wrong, pinned, in_place, len(graphs)


def in_process(args, process, results):
    results.put(run(args, process))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu-hazard: skipped, there is no GPU that PyTorch could use")
        return 77
    start = time.monotonic()
    context = mp.get_context("spawn")
    results = context.SimpleQueue()
    processes = [context.Process(target=in_process, args=(args, process, results)) for process in range(args.processes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    ends = [process.exitcode for process in processes]
    figures = [results.get() for _ in range(ends.count(0))]
    done, wrong, pinned, in_place, graphs = (sum(column) for column in zip(*figures)) if figures else (0,) * 5
    print(f"gpu-hazard: {done} batches in {time.monotonic() - start:.0f} s, {wrong} corrupt; {pinned} were pinned, {in_place} of them read "
          f"where their worker wrote them, {graphs} by graphs; seed {args.seed}", flush=True)
    if any(ends):
        print(f"gpu-hazard: trainers ended with {ends}", flush=True)
    return 1 if wrong or any(ends) else 0


if __name__ == "__main__":
    sys.exit(main())
