# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader and a GPU that is made up: batches are pinned and copied as PyTorch does it, and what arrives is checked.

    python3 tests/guard/fake_gpu.py LIBRARY [--batches N] [--epochs N] [--workers N] [--cached | --twice] [--by-name]

LIBRARY is libtorch_copy.so, built with the tests. Run under the guard; prints how many batches were pinned in place.
"""

import argparse
import ctypes
import itertools
import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

SIZE = 1 << 20
SLOTS = 6


class Numbers(Dataset):
    def __init__(self, batches, cached):
        self.batches = batches
        self.cached = cached
        self.cache = {}

    def __len__(self):
        return self.batches

    def __getitem__(self, number):
        if not self.cached:
            return torch.full((SIZE,), number % 251, dtype=torch.uint8)
        return self.cache.setdefault(number % 4, torch.full((SIZE,), number % 4, dtype=torch.uint8))


class Twice(IterableDataset):
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        for number in range(self.batches // 2):
            yield from [torch.full((SIZE,), number % 251, dtype=torch.uint8)] * 2


def pin_thread(work):
    """In a thread of the name that PyTorch gives its own."""
    libc = ctypes.CDLL(None)
    error = []

    def named():
        libc.prctl(15, b"pt_data_pin", 0, 0, 0)
        try:
            work()
        except BaseException as problem:
            error.append(problem)

    thread = threading.Thread(target=named)
    thread.start()
    thread.join()
    if error:
        raise error[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=1, help="with new workers each")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--delay", type=int, default=5, help="milliseconds before each copy")
    parser.add_argument("--cached", action="store_true", help="the dataset keeps what it returns")
    parser.add_argument("--twice", action="store_true", help="the dataset returns each batch twice, and the program writes to what it got")
    parser.add_argument("--by-name", action="store_true", help="share by name and not by descriptor")
    args = parser.parse_args()
    if args.by_name:
        torch.multiprocessing.set_sharing_strategy("file_system")
    cuda = ctypes.CDLL(args.library, mode=ctypes.RTLD_GLOBAL)
    cuda.fake_stream_make.restype = ctypes.c_void_p
    cuda.fake_stream_wait.argtypes = [ctypes.c_void_p]
    cuda.torch_is_pinned.argtypes = [ctypes.c_void_p]
    cuda.torch_is_pinned.restype = ctypes.c_bool
    cuda.torch_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    streams = [cuda.fake_stream_make() for _ in range(SLOTS)]
    devices = [torch.zeros(SIZE, dtype=torch.uint8) for _ in range(SLOTS)]
    expected = [0] * SLOTS
    cuda.fake_delay(args.delay)
    counts = {"pinned": 0, "wrong": 0}

    def check(slot):
        cuda.fake_stream_wait(streams[slot])
        counts["wrong"] += bool((devices[slot] != expected[slot]).any())

    def write_to_all():
        for number, batch in enumerate(DataLoader(Twice(args.batches), batch_size=None, num_workers=1, prefetch_factor=8)):
            pinned = cuda.torch_is_pinned(batch.data_ptr())
            counts["pinned"] += pinned
            mine = batch if pinned else batch.clone()  # as pin_memory() does
            counts["wrong"] += bool((mine != number // 2 % 251).any())
            mine.add_(1)

    def work():
        loader = DataLoader(Numbers(args.batches, args.cached), batch_size=None, num_workers=args.workers, timeout=120)
        for number, batch in enumerate(itertools.chain.from_iterable(itertools.repeat(loader, args.epochs))):
            slot = number % SLOTS
            check(slot)
            counts["pinned"] += cuda.torch_is_pinned(batch.data_ptr())
            assert cuda.torch_copy(devices[slot].data_ptr(), batch.data_ptr(), SIZE, streams[slot]) == 0
            expected[slot] = number % args.batches % (4 if args.cached else 251)
            del batch
        for slot in range(SLOTS):
            check(slot)

    pin_thread(write_to_all if args.twice else work)
    print(f"fake-gpu: {args.batches * args.epochs} batches, {counts['wrong']} wrong, {counts['pinned']} pinned in place")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
