# SPDX-License-Identifier: Apache-2.0
"""The training of bench/where.py: one worker that is never idle, and leaks a little. Prints for each batch the time in seconds since 1970, and the
CPU time that the worker has used until then."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

LEAK_BYTES = 48 << 10


class Samples(Dataset):
    """python: objects, as tokenisers and augmentations in Python make them. tensors: 40 MiB of short-lived tensors per sample."""

    def __init__(self, kind):
        self.kind = kind
        self.kept = []

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        if self.kind == "python":
            words = [f"{index}-{word}" for word in range(1500)]
            counted = {word: (len(word), word[::-1]) for word in words}
            answer = sum(size for size, _ in counted.values())
        else:
            image = torch.full((3, 512, 512), float(index % 5))
            for _ in range(12):
                image = (image * 1.01).clamp(0, 9)
            answer = int(image.sum())
        self.kept.append(torch.ones(LEAK_BYTES // 4))  # what the search has to find
        return torch.tensor(time.process_time() + answer * 0, dtype=torch.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind")
    parser.add_argument("seconds", type=float)
    args = parser.parse_args()
    torch.set_num_threads(1)
    loader = DataLoader(Samples(args.kind), batch_size=2, num_workers=1)
    end = time.monotonic() + args.seconds
    for used in loader:
        print(f"{time.time():.4f} {float(used.max()):.5f}")
        if time.monotonic() > end:
            break


if __name__ == "__main__":
    main()
