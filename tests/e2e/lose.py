# SPDX-License-Identifier: Apache-2.0
"""Trainings whose requests for shared memory are refused (run them with --budget 5M): lose.py WAY [MIB of a batch]

here      the command itself shares tensors; it catches the exception and continues with half the size
loader    a DataLoader's workers share tensors; the trainer catches the exception and retries with half the size
feeder    the queue threads of the workers share the batches: the worker is ended, and the trainer catches that
forget    like `here`, but it catches the exception and makes nothing else
queue     a process sends batches through a queue, whose thread prints the exception and drops them, unnoticed
iterable  a DataLoader whose workers exit before they can be ended
index     like `iterable`, but the trainer then uses the first batch, which is missing
"""

import sys

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, IterableDataset

MIB = 1 << 20
WORDS = MIB // 4


class Samples:
    def __init__(self, mib):
        self.mib = mib

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((self.mib * WORDS,), float(index))


class Stream(IterableDataset):
    def __init__(self, mib):
        self.mib = mib

    def __iter__(self):
        yield torch.ones(self.mib * WORDS)


def collate(samples):  # an ordinary tensor: the queue's thread shares it
    return samples[0].clone()


def halve(mib, train):
    while True:
        try:
            return train(mib)
        except RuntimeError as error:
            print("too large:", mib, str(error).splitlines()[-1])
            mib //= 2


def load(mib, **options):
    return sum(len(batch) // WORDS for batch in DataLoader(Samples(mib), num_workers=1, **options)) or mib


def send(queue, mib):
    for size in (mib, 1, mib):
        queue.put(torch.ones(size * WORDS))
    queue.put("end")
    queue.close()
    queue.join_thread()
    taken.wait(120)


def through_queue(mib):
    queue = mp.Queue()
    sender = mp.Process(target=send, args=(queue, mib))
    sender.start()
    n = 0
    while not isinstance(queue.get(), str):
        n += 1
    taken.set()
    sender.join()
    return n


taken = mp.Event()


def main():
    way, mib = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 16
    if way == "here":
        print("made", halve(mib, lambda n: torch.ones(n * WORDS).share_memory_() is not None and n), "MiB")
    elif way == "loader":
        print("made", halve(mib, load), "MiB")
    elif way == "feeder":
        print("made", halve(mib, lambda n: load(n, batch_size=None, collate_fn=lambda sample: sample.clone())), "MiB")
    elif way == "forget":
        try:
            torch.ones(mib * WORDS).share_memory_()
        except RuntimeError:
            print("never mind")
    elif way == "queue":
        print("batches", through_queue(mib))
    else:
        batches = list(DataLoader(Stream(mib), num_workers=2, batch_size=1, collate_fn=collate))
        print("batches", len(batches))
        if way == "index":
            print(batches[0].shape)


if __name__ == "__main__":
    main()
