# SPDX-License-Identifier: Apache-2.0
"""A training that leaks under a line that is known: leaks.py KIND SECONDS [--epoch SAMPLES] [--extension FILE]

The line that must be named ends with "# leaks: KIND"; a kind may have several. The kinds of STEADY leak nothing. Rates are a few MiB per second,
as large as a search needs that is to take half a minute and not hours.
"""

import argparse
import collections
import ctypes
import functools
import logging
import random
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

STEADY = ("steady", "garbage", "bounded", "warm-up")
PIECE = 16 << 10
WORDS = PIECE // 10  # of ten letters
seen = []
history = []
log = logging.getLogger("training")
log.propagate = False
log.setLevel(logging.INFO)


class Keeper(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


def make_closure():
    results = {}

    def transform(number):
        results[number, time.monotonic()] = f"{number:09} " * WORDS  # leaks: closure
        return number

    return transform


def check(number):
    payload = f"{number:09} " * WORDS  # leaks: exceptions
    if len(payload) > number % 2:
        raise ValueError(f"sample {number} is odd")  # leaks: exceptions


@functools.lru_cache(maxsize=64)
def bounded(number):
    return f"{number:09} " * WORDS * 16


class Samples(Dataset):
    def __init__(self, args):
        self.kind = args.kind
        self.epoch = args.epoch
        self.kept = []
        self.cache = {}
        self.recent = collections.deque(maxlen=50)
        self.calls = 0
        self.pool = numpy.zeros(1 << 20, dtype=numpy.uint8)
        self.make()

    def make(self):
        """What each worker has of its own, even one that is not forked."""
        self.transform = make_closure()
        self.extension = ctypes.PyDLL(ARGS.extension) if ARGS.extension else None
        log.addHandler(Keeper())

    def __getstate__(self):
        return {**self.__dict__, "transform": None, "extension": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.make()

    def __len__(self):
        return self.epoch

    def __getitem__(self, index):
        self.calls += 1
        time.sleep(0.004)
        work = getattr(self, "do_" + self.kind.replace("-", "_"), None)
        if work:
            work(index)
        return torch.full((256,), float(index % 7))

    def do_list(self, index):
        self.kept.append(f"{index:09} " * WORDS)  # leaks: list

    def do_cache(self, index):
        self.cache[self.calls] = bytes(PIECE)  # leaks: cache

    def do_closure(self, index):
        self.transform(index)

    def do_views(self, index):
        array = numpy.full(PIECE * 2, index % 251, dtype=numpy.uint8)  # leaks: views
        self.kept.append(array[:10])

    def do_extension(self, index):
        self.extension.leak(ctypes.c_size_t(PIECE * 4))  # leaks: extension

    def do_file(self, index):
        self.kept.append(open(__file__, "rb"))  # leaks: file
        self.kept[-1].read(16)

    def do_interned(self, index):
        self.cache[sys.intern(f"{self.calls:09} " * WORDS)] = index  # leaks: interned

    def do_logger(self, index):
        log.info("sample %d: %s", index, f"{index:09} " * WORDS)  # leaks: logger

    def do_exceptions(self, index):
        try:
            check(index)
        except ValueError as error:
            self.kept.append(error)

    def do_garbage(self, index):
        cycle = [f"{index:09} " * WORDS]
        cycle.append(cycle)
        self.recent.append(torch.ones(PIECE))

    def do_bounded(self, index):
        bounded(random.randrange(1000))

    def do_warm_up(self, index):
        if len(self.kept) < 200:
            self.kept.append(f"{index:09} " * WORDS)


def collate(samples):
    if KIND == "collate":
        seen.append([f"{i:09} " * WORDS for i in range(len(samples))])  # leaks: collate
    return default_collate(samples)


def train(loader, args, until):
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.Tanh(), torch.nn.Linear(512, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = 0
    while time.monotonic() < until:
        for batch in loader:
            if args.kind == "graph":
                loss = model(batch.repeat(16, 1)).square().mean()  # leaks: graph
                history.append(loss)
            elif args.kind == "trainer":
                history.append([f"{i:09} " * WORDS for i in range(8)])  # leaks: trainer
            elif batches % 8 == 0:
                loss = model(batch).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            batches += 1
            if time.monotonic() >= until:
                break
    print(batches)


def main():
    torch.set_num_threads(1)
    loader = DataLoader(Samples(ARGS), batch_size=8, num_workers=2, collate_fn=collate, persistent_workers=ARGS.epoch > 1 << 16)
    train(loader, ARGS, time.monotonic() + ARGS.seconds)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("kind")
parser.add_argument("seconds", type=float)
parser.add_argument("--epoch", type=int, default=1 << 20)
parser.add_argument("--extension")
ARGS = parser.parse_args()
KIND = ARGS.kind

if __name__ == "__main__":
    main()
