# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader with pin_memory=True to the GPU: plain, with recycled segments, and read where the worker wrote.

    python3 bench/gpu.py PROGRAM [--rounds N] [--workers N] [--mib 32,64] [--labels N] [--strategy NAME]
    python3 bench/gpu.py --profile PROGRAM       where the loader's thread spends its time

Rounds of the three are interleaved on the same machine. For each size it prints the median and the spread of each side and of the ratio.
It also prints two upper bounds: the rate of copies from memory that PyTorch itself has pinned, and the rate of as many processes that only
copy, each from one place to three others. With --labels, a batch has a second, small tensor, as that of a classifier has. Needs a GPU. Fails when a target is missed.
"""

import argparse
import statistics
import subprocess
import sys
import threading
import time

MIB = 1 << 20
RATIO_TARGET = 10.0
RATE_TARGET = 20.0  # GiB/s
WARM_BATCHES = 128  # a segment is registered when it is first reused


def dataset(size, batches, labels):
    import torch
    from torch.utils.data import Dataset

    class Copies(Dataset):
        """A batch costs its worker only one copy, so that the way to the GPU is measured."""

        def __init__(self):
            self.source = torch.ones(size, dtype=torch.uint8)

        def __len__(self):
            return batches

        def __getitem__(self, _):
            # Directly into shared memory, like the default collate.
            out = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))
            images = out.resize_(size).copy_(self.source)
            return (images, torch.arange(labels)) if labels else (images,)

    return Copies()


class Clock:
    """Adds up the time that the loader's thread spends in some functions, one after the other, and how much of it on a processor."""

    def __init__(self):
        self.seconds = {}

    def wrap(self, owner, name, label):
        inner = getattr(owner, name)

        def timed(*args, **kwargs):
            start, worked = time.perf_counter(), time.thread_time()
            try:
                return inner(*args, **kwargs)
            finally:
                if threading.current_thread() is not threading.main_thread():
                    whole, work = self.seconds.get(label, (0, 0))
                    self.seconds[label] = whole + time.perf_counter() - start, work + time.thread_time() - worked

        setattr(owner, name, timed)


def load(size, batches, workers, strategy, labels, profile):
    """The rate in bytes per second, after the first batches."""
    import torch
    from torch.utils.data import DataLoader

    torch.multiprocessing.set_sharing_strategy(strategy)
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    clock = Clock()
    loader = DataLoader(dataset(size, batches + WARM_BATCHES, labels), batch_size=None, num_workers=workers, pin_memory=True,
                        worker_init_fn=lambda _: torch.set_num_threads(1))
    iterator = iter(loader)
    if profile:
        clock.wrap(type(iterator._worker_result_queue), "get", "waiting for a batch, and making its tensors")
        clock.wrap(torch.Tensor, "pin_memory", "pinning them, or copies of them")
    start = time.perf_counter()
    waited = worked = 0
    for number in range(batches + WARM_BATCHES):
        if number == WARM_BATCHES:
            torch.cuda.synchronize()
            clock.seconds.clear()
            waited = 0
            worked, start = time.thread_time(), time.perf_counter()
        before = time.perf_counter()
        batch = next(iterator)
        waited += time.perf_counter() - before
        device = [tensor.to("cuda", non_blocking=True) for tensor in batch]
        del batch
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    assert bool((device[0] == 1).all())
    if profile:
        each = 1e6 / batches
        print(f"  {seconds * each:.0f} µs a batch; the main thread waited for {waited * each:.0f} of them and used a processor for "
              f"{(time.thread_time() - worked) * each:.0f}; the loader's thread (in parentheses: of it on a processor):")
        for label, (whole, work) in sorted(clock.seconds.items(), key=lambda item: -item[1][0]):
            print(f"    {whole * each:6.0f} ({work * each:.0f}) µs {label}")
    return size * batches / seconds


def link_rate():
    import torch

    source = torch.empty(256 * MIB, dtype=torch.uint8).pin_memory()
    target = torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
    target.copy_(source)
    start = time.perf_counter()
    for _ in range(20):
        target.copy_(source, non_blocking=True)
    torch.cuda.synchronize()
    return 20 * 256 * MIB / (time.perf_counter() - start)


def copy_for(seconds, size, counts):
    import torch

    torch.set_num_threads(1)
    source = torch.ones(size, dtype=torch.uint8)
    targets = [torch.zeros(size, dtype=torch.uint8).share_memory_() for _ in range(3)]
    copies = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        targets[copies % 3].copy_(source)
        copies += 1
    counts.put(copies / (time.perf_counter() - start))


def copies_rate(size, workers):
    import torch.multiprocessing

    counts = torch.multiprocessing.SimpleQueue()
    processes = [torch.multiprocessing.Process(target=copy_for, args=(2, size, counts)) for _ in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return size * sum(counts.get() for _ in processes)


def spread(values):
    return f"{statistics.median(values):6.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--mib", default="32,64")
    parser.add_argument("--strategy", default="file_descriptor")
    parser.add_argument("--labels", type=int, default=0, metavar="N", help="int64 numbers in a second tensor of each batch")
    parser.add_argument("--gib", type=float, default=16, help="of a round under the guard; a plain one has an eighth")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--load", nargs=2, type=int, metavar=("BYTES", "BATCHES"), help="one load, and its rate")
    args = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("bench-gpu: skipped, there is no GPU that PyTorch could use")
        return 77
    if args.load:
        print(load(*args.load, args.workers, args.strategy, args.labels, args.profile))
        return 0
    guard = [args.program, "run", "--quiet"]
    sides = {"plain": [], "recycled": [*guard, "--pin", "off", "--"], "in place": [*guard, "--"]}
    missed = False
    sizes = [int(size) for size in args.mib.split(",")]
    for mib in sizes:  # before CUDA is initialized here: it does not survive a fork
        print(f"{args.workers} processes that copy {mib} MiB: {copies_rate(mib * MIB, args.workers) / 2**30:.1f} GiB/s", flush=True)
    print(f"link: {link_rate() / 2**30:.1f} GiB/s", flush=True)
    for mib in sizes:
        rates = {side: [] for side in sides}
        for number in range(args.rounds):
            for side, before in sides.items():
                gib = args.gib if side == "in place" else args.gib / 8
                command = [*before, sys.executable, __file__, "--workers", str(args.workers), "--strategy", args.strategy,
                           "--labels", str(args.labels), "--load", str(mib * MIB), str(int(gib * 1024 / mib))]
                profile = args.profile and number == 0
                done = subprocess.run(command + ["--profile"] * profile, stdout=subprocess.PIPE, text=True, check=True)
                *words, rate = done.stdout.splitlines()
                rates[side].append(float(rate) / 2**30)
                if words:
                    print(f"{mib} MiB, {side}", *words, sep="\n", flush=True)
        ratios = [new / old for new, old in zip(rates["in place"], rates["plain"])]
        reached = statistics.median(ratios) >= RATIO_TARGET and statistics.median(rates["in place"]) >= RATE_TARGET
        missed = missed or not reached
        print(f"{mib} MiB, {args.workers} workers, {args.strategy}", *[f"  {side:9}{spread(rates[side])} GiB/s" for side in sides],
              f"  ratio    {spread(ratios)}, targets {RATIO_TARGET:.0f} and {RATE_TARGET:.0f} GiB/s: {'reached' if reached else 'MISSED'}",
              sep="\n", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
