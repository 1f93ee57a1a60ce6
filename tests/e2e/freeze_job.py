# SPDX-License-Identifier: Apache-2.0
"""A training whose dataset is Python objects: freeze_job.py KIND ITEMS WORKERS EPOCHS [--rebuild] [--method METHOD].

Prints as JSON a digest of all batches, how much private memory a worker gained at most after its first items (bytes), and how much private
memory all processes had together at the end. With --rebuild, every epoch has a dataset of its own, and the first item says what was frozen.
"""
import argparse
import dataclasses
import gc
import hashlib
import json
import os
import sys

import torch
from torch.utils.data import DataLoader, Dataset

WARM_ITEMS = 1000


@dataclasses.dataclass
class Record:
    name: str
    width: int
    boxes: list


def made(kind, n):
    if kind == "dicts":
        return [{"file_name": f"images/{i}.jpg", "id": 1000 + i, "height": 480.5 + i, "boxes": [i + 0.5, i + 1.5]} for i in range(n)]
    if kind == "tuples":
        return [(f"images/{i}.jpg", 1000 + i, i + 0.5) for i in range(n)]
    if kind == "strings":
        return [f"a sentence of some words, number {i}" for i in range(n)]
    if kind == "dataclasses":
        return [Record(f"images/{i}.jpg", 1000 + i, [i + 0.5, i + 1.5]) for i in range(n)]
    if kind == "nested":
        return [[[i + 0.5, i + 1000], [str(i + 1000)]] for i in range(n)]
    import pandas

    return pandas.DataFrame({"text": pandas.Series([f"a sentence, number {i}" for i in range(n)], dtype=object), "label": range(n)})


READ = {
    "dicts": lambda item: len(item["file_name"]) + item["id"] + sum(item["boxes"]),
    "tuples": lambda item: len(item[0]) + item[1] + item[2],
    "strings": len,
    "dataclasses": lambda item: len(item.name) + item.width + sum(item.boxes),
    "nested": lambda item: item[0][0] + item[0][1] + len(item[1][0]),
    "pandas": len,
}


def private_bytes(pid="self"):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        return sum(int(line.split()[1]) << 10 for line in rollup if line.startswith("Private_"))


class Items(Dataset):
    def __init__(self, kind, n):
        self.items = made(kind, n)
        self.kind = kind
        self.reads = self.before = 0

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        value = READ[self.kind](self.items["text"].iat[i] if self.kind == "pandas" else self.items[i])
        self.reads += 1
        if self.reads == WARM_ITEMS:
            self.before = private_bytes()
        grown = private_bytes() - self.before if self.reads % 20_000 == 0 else 0
        return value, grown, sys.getrefcount(self.items if self.kind != "pandas" else self.items["text"].iat[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("items", type=int)
    parser.add_argument("workers", type=int)
    parser.add_argument("epochs", type=int)
    parser.add_argument("--rebuild", action="store_true")
    parser.add_argument("--method", default="fork")
    options = parser.parse_args()
    digest, grown, frozen, total = hashlib.sha256(), 0, [], 0
    loader = None
    for epoch in range(options.epochs):
        if not loader or options.rebuild:
            loader = items = None
            gc.collect()
            items = Items(options.kind, options.items)
            loader = DataLoader(items, batch_size=500, num_workers=options.workers, persistent_workers=True, shuffle=True,
                                multiprocessing_context=options.method, generator=torch.Generator().manual_seed(epoch))
        for values, growths, counts in loader:
            digest.update(values.to(torch.float64).numpy().tobytes())
            grown = max(grown, int(growths.max()))
        frozen.append(bool(counts.max() > 1 << 30))
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children", encoding="ascii") as children:
            total = max(total, sum(map(private_bytes, [os.getpid(), *children.read().split()])))
    print(json.dumps({"digest": digest.hexdigest(), "grown": grown, "frozen": frozen, "private": total, "own": private_bytes()}))


if __name__ == "__main__":
    main()
