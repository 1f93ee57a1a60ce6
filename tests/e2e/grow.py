# SPDX-License-Identifier: Apache-2.0
"""A small real training whose memory use follows a given pattern, for the tests of verdicts.

Each --kind is a mistake that people make, or none at all. --rate is in MiB per second (or descriptors or tensors per second),
for steady growth; --size is in MiB, for growth towards a final size. Growth follows the clock, not the steps, so that a
busy machine changes the noise and not the rate.
"""

import time

STARTED = time.monotonic()

import argparse
import gc
import mmap
import os
import random
import resource
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

MIB = 1 << 20
KINDS = ["steady", "noisy", "spikes", "step", "settling", "leak", "worker-leak", "cow", "sawtooth", "trainer-sawtooth",
         "backlog", "tensors", "fd", "page-cache"]


class Pace:
    """How much is due since the start, at a given rate per second."""

    def __init__(self, rate):
        self.rate = rate
        self.start = time.monotonic()
        self.paid = 0

    def due(self):
        whole = int((time.monotonic() - self.start) * self.rate) - self.paid
        self.paid += whole
        return whole


def memory(mib):
    """Private memory that is really allocated."""
    return torch.ones(mib * MIB // 4)


class Samples(Dataset):
    def __init__(self, args):
        self.args = args
        self.kept = []
        self.pace = None
        # Many small objects: when a worker changes the reference count of one, its page is copied.
        self.names = [f"{i:0200d}" for i in range(args.size * MIB // 256)] if args.kind == "cow" else []
        self.file = None
        if args.kind == "page-cache":
            self.file = tempfile.NamedTemporaryFile(dir=args.scratch)
            block = os.urandom(MIB)
            for _ in range(args.size):
                self.file.write(block)
            self.file.flush()
        self.map = None

    def work(self):
        info = get_worker_info()
        if self.pace is None:
            self.pace = Pace(self.args.rate)
            self.at = 0
            if self.names:  # each worker begins with its own part and continues with the others'
                self.at = info.id * len(self.names) // info.num_workers if info else 0
        kind = self.args.kind
        if kind in ("sawtooth", "worker-leak"):
            for _ in range(self.pace.due()):
                self.kept.append(memory(1))
        elif kind == "cow":
            count = min(self.pace.due() * MIB // 256, len(self.names))
            for _ in range(count):
                name = self.names[self.at]
                self.at = (self.at + 1) % len(self.names)
                del name
        elif kind == "page-cache":
            if self.map is None:
                self.map = mmap.mmap(self.file.fileno(), 0, prot=mmap.PROT_READ)
            for _ in range(self.pace.due()):
                sum(self.map[self.at:self.at + MIB:4096])
                self.at = (self.at + MIB) % (self.args.size * MIB)

    def __getitem__(self, index):
        if index % self.args.batch == 0:
            self.work()
        if self.args.delay:
            time.sleep(self.args.delay / self.args.batch)
        return torch.full((3, self.args.side, self.args.side), float(index % 7))


def collate_some(samples):
    """Batches of random size, from one sample to all of them."""
    return torch.stack(samples[:random.randint(1, len(samples))])


class Trainer:
    def __init__(self, args):
        self.args = args
        self.pace = None
        self.kept = []
        self.model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(),
                                         torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.start = None
        self.stepped = False

    def step(self, batch):
        if self.pace is None:  # starting the workers takes time that does not count
            self.pace = Pace(self.args.rate)
            self.start = time.monotonic()
        loss = self.model(batch).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        getattr(self, "do_" + self.args.kind.replace("-", "_"), lambda batch: None)(batch)

    def do_leak(self, _batch):
        for _ in range(self.pace.due()):
            self.kept.append(memory(1))

    do_trainer_sawtooth = do_leak

    def do_backlog(self, batch):
        # Keeps the batches that are due, so that they stay in shared memory.
        if self.pace.due() > 0:
            self.pace.paid += batch.numel() * 4 // MIB
            self.kept.append(batch)

    def do_tensors(self, batch):
        # Tiny ones, as labels are: they take descriptors, but hardly any memory.
        if self.pace.due() > 0:
            self.kept.append(batch)

    def do_fd(self, _batch):
        for _ in range(self.pace.due()):
            self.kept.append(os.open("/dev/null", os.O_RDONLY))

    def do_noisy(self, _batch):
        self.kept = [memory(random.randint(1, max(self.args.size, 1)))]

    def do_spikes(self, _batch):
        # Cycles that only the garbage collector can free.
        for _ in range(20):
            loop = [bytearray(self.args.size * 1024)]
            loop.append(loop)
        if random.random() < 0.02:
            gc.collect()

    def do_step(self, _batch):
        if not self.stepped and time.monotonic() - self.start > self.args.seconds / 2:
            self.stepped = True
            self.kept.append(memory(self.args.size))

    def do_settling(self, _batch):
        # Like a cache that fills up in random order.
        seconds = time.monotonic() - self.start
        wanted = int(self.args.size * (1 - 2.718 ** (-seconds / self.args.seconds * 6)))
        while len(self.kept) < wanted:
            self.kept.append(memory(1))

    def epoch_ended(self):
        if self.args.kind == "trainer-sawtooth":
            self.kept.clear()


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, default="steady")
    parser.add_argument("--seconds", type=float, default=12, help="of training, once the first batch is there")
    parser.add_argument("--epochs", type=int, default=1, help="in these seconds")
    parser.add_argument("--rate", type=float, default=8)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--delay", type=float, default=0.04, help="of a batch, in the worker")
    parser.add_argument("--start-method", choices=["fork", "spawn", "forkserver"], default="fork")
    parser.add_argument("--strategy", choices=["file_descriptor", "file_system"], default="file_descriptor")
    parser.add_argument("--scratch", default=None, help="where files are made")
    parser.add_argument("--open-files", type=int, help="the limit")
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (args.open_files or hard, hard))
    return args


class Clock:
    """Yields indices until the epoch's time is over. The time starts with the first batch, because workers may start slowly."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.until = None

    def __iter__(self):
        self.until = None
        index = 0
        while self.until is None or time.monotonic() < self.until:
            yield index
            index += 1

    def start(self):
        if self.until is None:
            self.until = time.monotonic() + self.seconds


def main():
    args = options()
    # If the machine is so busy that starting took longer than the training would, train for longer.
    args.seconds = max(args.seconds, 2 * (time.monotonic() - STARTED))
    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy(args.strategy)
    clock = Clock(args.seconds / args.epochs)
    loader = DataLoader(Samples(args), batch_size=args.batch, num_workers=args.workers, drop_last=True,
                        sampler=clock,
                        collate_fn=collate_some if args.kind == "noisy" else None,
                        persistent_workers=args.persistent and args.workers > 0,
                        multiprocessing_context=args.start_method if args.workers else None)
    trainer = Trainer(args)
    for _ in range(args.epochs):
        for batch in loader:
            clock.start()
            trainer.step(batch)
        trainer.epoch_ended()


if __name__ == "__main__":
    main()
    os._exit(0)  # shutting PyTorch down is not part of the training, and takes long on a busy machine
