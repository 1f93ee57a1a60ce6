# SPDX-License-Identifier: Apache-2.0
"""Makes one DataLoader fail in a chosen way, so that capture.sh can keep the log.

Usage: fail.py SCENARIO [fork|spawn] [file_descriptor|file_system]
"""
import ctypes
import os
import signal
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

MIB = 1 << 20


class Items(Dataset):
    """Items of `mib` MiB; `act` is called in the worker before each."""

    def __init__(self, mib=0, act=None, n=64):
        self.mib = mib
        self.act = act
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if self.act:
            self.act(index)
        return torch.ones(max(1, self.mib * MIB // 4))


class Pieces(Dataset):
    """Each item is many tensors, each of which takes a descriptor."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return [torch.ones(1) for _ in range(100)]


class Mapped(Dataset):
    """A mapped file that somebody cuts while it is read."""

    def __init__(self, path="features.bin"):
        self.path = path
        numpy.zeros(8 * MIB, dtype=numpy.uint8).tofile(path)
        self.features = numpy.memmap(path, dtype=numpy.uint8, mode="r")
        print(f"{path}: numpy.memmap of {self.features.size} bytes", flush=True)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 2:
            os.truncate(self.path, 4096)
        return torch.from_numpy(self.features[index * 32768:(index + 1) * 32768].astype(numpy.float32))


def raise_value_error(index):
    if index == 5:
        raise ValueError("image 5 has 4 channels, expected 3")


def uneven_collate(items):
    return torch.stack([torch.ones(3 + i) for i in range(len(items))])


def sleep(index):
    if index >= 2:
        time.sleep(60)


def kill_self(number):
    def act(index):
        if index >= 2 and get_worker_info().id == 0:
            os.kill(os.getpid(), number)
    return act


def null_pointer(index):
    if index >= 2:
        ctypes.string_at(0)


def leave(index):
    os._exit(1)


eaten = []


def eat(index):
    eaten.append(bytearray(os.urandom(1) * (64 * MIB)))


def delete_segments(step):
    if step == 0:
        for name in os.listdir("/dev/shm"):
            if name.startswith("torch_"):
                os.unlink("/dev/shm/" + name)


def consume(dataset, hold=False, each=None, **options):
    held = []
    for step, batch in enumerate(DataLoader(dataset, **options)):
        if hold:
            held.append(batch)
        if each:
            each(step)
        if step % 8 == 0:
            print(f"step {step} loss 0.{693 - step}", flush=True)


def main():
    scenario = sys.argv[1]
    method = sys.argv[2] if len(sys.argv) > 2 else "fork"
    if len(sys.argv) > 3:
        torch.multiprocessing.set_sharing_strategy(sys.argv[3])
    common = {"num_workers": 2, "multiprocessing_context": method}

    if scenario == "batches":
        consume(Items(mib=8), batch_size=4, **common)
    elif scenario == "hold":
        consume(Items(n=400), hold=True, batch_size=1, **common)
    elif scenario == "pieces":
        consume(Pieces(), batch_size=1, **common)
    elif scenario == "maps":
        held = [torch.ones(1).share_memory_() for _ in range(70000)]
        print(len(held))
    elif scenario == "item":
        consume(Items(act=raise_value_error), batch_size=4, **common)
    elif scenario == "collate":
        consume(Items(), batch_size=4, collate_fn=uneven_collate, **common)
    elif scenario == "timeout":
        consume(Items(act=sleep), timeout=2, batch_size=1, **common)
    elif scenario == "feeder":
        consume(Items(mib=32), collate_fn=list, timeout=5, batch_size=4, **common)
    elif scenario.startswith("SIG"):
        consume(Items(act=kill_self(getattr(signal, scenario))), batch_size=1, **common)
    elif scenario == "null":
        consume(Items(act=null_pointer), batch_size=1, **common)
    elif scenario == "leave":
        consume(Items(act=leave), batch_size=1, **common)
    elif scenario == "eat":
        consume(Items(act=eat), batch_size=1, **common)
    elif scenario == "lambda":
        consume(Items(act=lambda index: None), batch_size=1, **common)
    elif scenario == "handle":
        data = Items()
        data.file = open(__file__)
        consume(data, batch_size=1, **common)
    elif scenario == "mapped":
        consume(Mapped(), batch_size=1, **common)
    elif scenario == "delete":
        consume(Items(mib=1), each=delete_segments, batch_size=1, **common)
    elif scenario == "shared_memory":
        from multiprocessing import shared_memory
        held = []
        for _ in range(16):
            held.append(shared_memory.SharedMemory(create=True, size=16 * MIB))
            held[-1].buf[:] = bytes(16 * MIB)
    elif scenario == "attach":
        from multiprocessing import shared_memory
        shared_memory.SharedMemory(name="psm_0a1b2c3d")
    elif scenario == "file":
        with open("/dev/shm/cache.bin", "wb") as out:
            out.write(bytes(128 * MIB))
    elif scenario == "checkpoint":
        torch.save(torch.ones(32 * MIB), "checkpoint.pt")
    elif scenario == "cpu-memory":
        torch.ones(1 << 42)
    elif scenario == "numpy-memory":
        numpy.ones(1 << 42)
    elif scenario == "healthy":
        consume(Items(), batch_size=1, **common)
    else:
        raise SystemExit(f"no scenario {scenario}")


if __name__ == "__main__":
    main()
