# SPDX-License-Identifier: Apache-2.0
"""A small training that has one of the usual troubles, for the guides in docs/guides: trouble.py crash|exit|memory|files|leak|copies|slow"""

import argparse
import ctypes
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, trouble, count):
        self.trouble = trouble
        self.count = count
        self.cache = {}
        # Reading a Python object writes its reference count, so each worker gets its own copy of these.
        self.records = [{"name": f"image-{index}", "label": index % 10} for index in range(400_000 if trouble == "copies" else 1)]

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.trouble == "crash" and index == 100:
            ctypes.string_at(0)  # what a bug in a native library does
        if self.trouble == "exit" and index == 100:
            os._exit(1)
        if self.trouble in ("memory", "leak"):
            size = 1 << 20 if self.trouble == "memory" else 1 << 14
            self.cache[index] = os.urandom(size)  # without a bound
        if self.trouble == "slow":
            time.sleep(0.01)
        if self.trouble in ("leak", "copies"):
            time.sleep(0.001)
        step = len(self.records) // self.count or 1
        labels = [record["label"] for record in self.records[index * step:(index + 1) * step]]
        return torch.full((3, 64, 64), index % 251, dtype=torch.uint8), labels[0] if labels else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trouble", choices=["crash", "exit", "memory", "files", "leak", "copies", "slow"])
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    loader = DataLoader(Samples(args.trouble, args.samples), batch_size=args.batch, num_workers=args.workers)
    kept = []
    start = time.perf_counter()
    for images, labels in loader:
        if args.trouble == "files":
            kept.append(labels)  # each batch that is kept also keeps a descriptor
    print(f"finished {args.samples} samples, {args.samples / (time.perf_counter() - start):.0f} per second")


if __name__ == "__main__":
    main()
