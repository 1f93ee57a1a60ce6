# SPDX-License-Identifier: Apache-2.0
"""A small training that dies in the way given: crash.py WAY [--strategy S]. All of them happen in real trainings."""

import argparse
import ctypes
import mmap
import os
import signal
import sys
import tempfile
import time

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

MIB = 1 << 20


def segfault():
    ctypes.string_at(8)


def cut_short():
    """Reads a mapped file after it was truncated."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(16 * MIB)
        data = mmap.mmap(file.fileno(), 16 * MIB)
        file.truncate(MIB)
        return data[8 * MIB]


def eat_memory():
    kept = []
    while True:
        kept.append(bytearray(os.urandom(MIB)) * 16)


def take_mappings():
    """Uses nearly all mappings that a process may have, so that PyTorch runs out of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    protection = 1
    while True:
        protection = 3 - protection  # neighbours with different protection are not merged
        if libc.mmap(None, 4096, protection, 0x22, -1, 0) == ctypes.c_void_p(-1).value:
            return


class Numbers(Dataset):
    def __init__(self, way, n, words):
        self.way, self.n, self.words = way, n, words

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if index == 12:
            if self.way == "getitem":
                raise ValueError("sample 12 is broken")
            if self.way == "worker-segfault":
                segfault()
            if self.way == "worker-cut-short":
                cut_short()
            if self.way == "worker-eats":
                eat_memory()
            if self.way == "worker-hangs":
                time.sleep(600)
            if self.way == "worker-abort":
                os.abort()
            if self.way == "worker-killed":
                os.kill(os.getpid(), signal.SIGKILL)
        if self.way.endswith("waits"):
            time.sleep(0.05)
        return torch.full((self.words,), index)


class Collate:
    def __init__(self, way):
        self.way = way

    def __call__(self, samples):
        if self.way == "collate" and int(samples[0][0]) >= 12:
            raise RuntimeError("stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1")
        if self.way == "feeder":  # not in shared memory: the queue's feeder thread copies it there
            return [torch.cat(list(samples))]
        return torch.utils.data.dataloader.default_collate(samples)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--strategy", default="file_descriptor")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=MIB, help="of a batch of 4")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=0)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--step", type=float, default=0)
    args = parser.parse_args()
    mp.set_sharing_strategy(args.strategy)
    loader = DataLoader(Numbers(args.way, 4 * args.batches, args.bytes // 32), batch_size=4, num_workers=args.workers,
                        collate_fn=Collate(args.way), timeout=args.timeout)
    kept = []
    for step, batch in enumerate(loader):
        if step == 1:
            print("training", flush=True)
        tensor = batch[0] if isinstance(batch, list) else batch
        first = tensor.view(4, -1)
        for row in range(4):
            assert bool((first[row] == step * 4 + row).all()), f"batch {step} is corrupt"
        if args.keep:
            kept.append(batch)
        if args.step:
            time.sleep(args.step)
        if step == 3:
            if args.way == "main":
                raise KeyError("no such layer: 'head'")
            if args.way == "segfault":
                segfault()
            if args.way == "cut-short":
                cut_short()
            if args.way == "eats":
                eat_memory()
            if args.way == "maps":
                take_mappings()
            if args.way == "exit":
                sys.exit(3)
            if args.way == "abort":
                os.abort()
            if args.way == "fpe":
                os.kill(os.getpid(), signal.SIGFPE)
        del batch, tensor, first
    print(f"finished {args.batches} batches", flush=True)


if __name__ == "__main__":
    main()
