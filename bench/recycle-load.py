# SPDX-License-Identifier: Apache-2.0
"""One side of bench/recycle.py: loads epochs of batches, reads every word of them, and prints what that cost as JSON.

A batch is one tensor, or a list of images whose sides are random, as in detection. The workers are new in every epoch, as they are by
default. Page faults are those of the first batch of a worker while it is made, and all of the trainer's.
"""

import argparse
import json
import random
import resource
import statistics
import time

import torch
from torch.utils.data import DataLoader, Dataset, default_collate

IMAGES = 16


class Images(Dataset):
    """Each item is a batch: its number, and tensors full of it."""

    def __init__(self, batches, low, high, one):
        self.batches, self.low, self.high, self.one = batches, low, high, one

    def __len__(self):
        return self.batches

    def __getitem__(self, number):
        if self.one:
            return number, [torch.full((3, self.high, self.high), float(number))] * IMAGES
        sides = random.Random(number)
        return number, [torch.full((3, sides.randint(self.low, self.high), sides.randint(self.low, self.high)), float(number))
                        for _ in range(IMAGES)]


class Collate:
    """The page faults that making a batch of one tensor in shared memory took, and how often this worker has done so."""

    def __init__(self, one):
        self.one, self.calls = one, 0

    def __call__(self, item):
        number, images = item
        self.calls += 1
        before = faults()
        tensors = [default_collate(images)] if self.one else images
        return number, tensors, faults() - before, self.calls


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def processor_seconds():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--low", type=int, default=0, help="the shortest side of an image")
    parser.add_argument("--high", type=int, required=True, help="the longest")
    parser.add_argument("--one", action="store_true", help="one tensor per batch, of the longest sides")
    parser.add_argument("--method", default="fork")
    parser.add_argument("--strategy", default="file_descriptor")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy(args.strategy)
    loader = DataLoader(Images(args.batches, args.low, args.high, args.one), batch_size=None, num_workers=args.workers,
                        collate_fn=Collate(args.one), multiprocessing_context=args.method)
    first_faults, trainer_faults = [], []
    start = time.perf_counter()
    for _ in range(args.epochs):
        before = faults()
        for expected, (number, tensors, made, calls) in enumerate(loader):
            assert number == expected
            for tensor in tensors:
                low, high = tensor.aminmax()
                assert low == high == number, f"batch {number} has {low} to {high}"
            if calls == 1:
                first_faults.append(made)
        trainer_faults.append(faults() - before)
    print(json.dumps({
        "seconds": time.perf_counter() - start,
        "processor_seconds": processor_seconds(),
        "first_faults": statistics.median(first_faults[args.workers:] or first_faults),
        "trainer_faults": statistics.median(trainer_faults[1:] or trainer_faults),
    }))


if __name__ == "__main__":
    main()
