# SPDX-License-Identifier: Apache-2.0
"""Batches of many and of small tensors, plain and under the guard, in interleaved rounds on the same machine.

    python3 bench/lane.py PROGRAM [--rounds N] [--python PYTHON] [--cuda] [--workers N] [SHAPE…]

With --cuda, batches are pinned and copied to a GPU, and a third side runs with --pin off. Prints the median and the spread (min to max) of batches per second on both sides and of their ratio, round by round. Ratios are what
counts: absolute rates are the machine's. Fails when a target is missed.
"""

import argparse
import statistics
import subprocess
import sys
import time

KIB = 1 << 10
MIB = 1 << 20


def tensors(count, size):
    import torch

    return [torch.full((size // 4,), float(number)) for number in range(count)]


def pictures(count, size):
    """A list for detection: a picture, and the small tensors that describe it, for each."""
    import torch

    return [{"picture": torch.zeros(size // 4 - 1000 * number), "boxes": torch.zeros(5, 4), "labels": torch.zeros(5, dtype=torch.int64),
             "area": torch.zeros(5), "crowd": torch.zeros(5, dtype=torch.int64), "size": torch.tensor([3, 4]),
             "original": torch.tensor([5, 6]), "id": torch.tensor([number])} for number in range(count)]


def arrays():
    import numpy

    return {"array": numpy.zeros(MIB, numpy.float32), "small": [numpy.zeros(256, numpy.float32) for _ in range(3)]}


def images(count, size):
    """As the default collate function makes them."""
    import torch

    return torch.utils.data.default_collate([(torch.zeros(3, size, size), number) for number in range(count)])


def tokens(batch, length):
    """As a tokenizer makes them."""
    import torch

    names = ("input_ids", "attention_mask", "token_type_ids", "labels")
    return {name: torch.full((batch, length), number) for number, name in enumerate(names)}


def graph():
    """Of PyG: many graphs in one batch, as a node table, edges and a score of small tensors."""
    import torch

    small = {f"attribute_{number}": torch.full((64 + 100 * number,), float(number)) for number in range(16)}
    return {"x": torch.zeros(3000, 32), "edge_index": torch.zeros(2, 12_000, dtype=torch.int64), "edge_attr": torch.zeros(12_000, 4),
            "batch": torch.zeros(3000, dtype=torch.int64), **small}


def video():
    import torch

    return {"clips": torch.zeros(4, 16, 3, 224, 224, dtype=torch.uint8), "labels": torch.zeros(4, dtype=torch.int64),
            "starts": torch.zeros(4, dtype=torch.float64)}


def jagged():
    """Of a recommender: values of 26 features with their lengths, dense features and labels."""
    import torch

    return {"values": torch.zeros(200_000, dtype=torch.int64), "lengths": torch.zeros(26 * 4096, dtype=torch.int32),
            "offsets": torch.zeros(26 * 4096 + 1, dtype=torch.int32), "dense": torch.zeros(4096, 13), "labels": torch.zeros(4096)}


# name: how a batch is made, batches, workers, strategy, the ratio to reach
SHAPES = {
    "48x1KiB": (lambda: tensors(48, KIB), 1500, 2, "file_descriptor", 12),
    "48x1KiB-busy": (lambda: tensors(48, KIB), 400, 2, "file_descriptor", 2),
    "8x64KiB": (lambda: tensors(8, 64 * KIB), 1500, 2, "file_descriptor", 8),
    "4x256KiB": (lambda: tensors(4, 256 * KIB), 1500, 2, "file_descriptor", 4),
    "1x128KiB": (lambda: tensors(1, 128 * KIB), 3000, 2, "file_descriptor", 1),
    "9MiB+labels": (lambda: images(16, 224), 400, 2, "file_descriptor", 4),
    "2MiB-tokens": (lambda: tensors(1, 2 * MIB), 800, 2, "file_descriptor", 2),
    "detection": (lambda: pictures(16, MIB), 150, 2, "file_descriptor", 4),
    "tokens": (lambda: tokens(32, 128), 1500, 2, "file_descriptor", 4),
    "long-tokens": (lambda: tokens(64, 2048), 600, 2, "file_descriptor", 2),
    "graph": (graph, 600, 2, "file_descriptor", 4),
    "video": (video, 300, 2, "file_descriptor", 2),
    "jagged": (jagged, 600, 2, "file_descriptor", 2),
    "numpy": (arrays, 300, 2, "file_descriptor", 3),
    "strings": (lambda: ["one %d" % number for number in range(64)], 6000, 2, "file_descriptor", 0.97),
    "long-list": (lambda: list(range(100_000)), 300, 2, "file_descriptor", 1),
    "file_system-8x64KiB": (lambda: tensors(8, 64 * KIB), 800, 2, "file_system", 4),
    "file_system-48x1KiB": (lambda: tensors(48, KIB), 800, 2, "file_system", 4),
    "file_system-2MiB": (lambda: tensors(1, 2 * MIB), 800, 2, "file_system", 1),
    "number": (lambda: 7, 12000, 2, "file_descriptor", 1),
    "tiny": (lambda: tensors(1, 32), 6000, 2, "file_descriptor", 2),
}
BUSY_SECONDS = 0.005


def work():
    end = time.perf_counter() + BUSY_SECONDS
    while time.perf_counter() < end:
        pass


def to_cuda(batch):
    if isinstance(batch, dict):
        return {key: to_cuda(value) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_cuda(value) for value in batch]
    return batch.to("cuda", non_blocking=True) if hasattr(batch, "to") else batch


def load(name, cuda, workers):
    """One side: prints the steady rate in batches per second."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    make, batches, default_workers, strategy, _ = SHAPES[name]
    warm = max(128 if cuda else 10, batches // 5)

    class Batches(Dataset):
        def __len__(self):
            return batches + warm

        def __getitem__(self, index):
            if name.endswith("busy"):
                work()
            return make()

    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy(strategy)
    start = None
    loader = DataLoader(Batches(), batch_size=None, num_workers=workers or default_workers, collate_fn=lambda batch: batch, pin_memory=cuda,
                        worker_init_fn=lambda _: torch.set_num_threads(1))
    for number, batch in enumerate(loader):
        if number == warm:
            start = time.perf_counter()
        if cuda:
            to_cuda(batch)
    if cuda:
        torch.cuda.synchronize()
    print(batches / (time.perf_counter() - start))


def spread(values):
    return f"{statistics.median(values):9.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("shape", nargs="*", metavar="SHAPE", help=", ".join(SHAPES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--load", action="store_true", help="be one side: PROGRAM is the shape")
    args = parser.parse_intermixed_args()
    if args.load:
        return load(args.program, args.cuda, args.workers)
    missed = []
    for name in args.shape or SHAPES:
        command = [args.python, "-W", "ignore", __file__, "--load", name, *["--cuda"] * args.cuda]
        command += ["--workers", str(args.workers)] if args.workers else []
        plain, guarded, unpinned = [], [], []
        run = [args.program, "run", "--quiet"]
        sides = [(plain, []), (guarded, [*run, "--"])] + [(unpinned, [*run, "--pin", "off", "--"])] * args.cuda
        for _ in range(args.rounds):
            for rates, prefix in sides:
                done = subprocess.run([*prefix, *command], stdout=subprocess.PIPE, check=True)
                rates.append(float(done.stdout))
        if unpinned:
            print(f"{name}, --pin off\n         {spread(unpinned)} batches/s")
        ratios = [under / without for under, without in zip(guarded, plain)]
        target = SHAPES[name][-1]
        reached = statistics.median(ratios) >= target
        print(f"{name}\n  plain  {spread(plain)} batches/s\n  guard  {spread(guarded)} batches/s\n"
              f"  ratio  {spread(ratios)}, target {target}: {'reached' if reached else 'MISSED'}", flush=True)
        if not reached:
            missed.append(name)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
