# SPDX-License-Identifier: Apache-2.0
"""One side of bench/loader.py: loads batches with PyTorch's own collate function and prints the steady rate in bytes per second.

The samples are already in memory, so only the transport of a batch from worker to trainer is measured. The trainer checks the first and the
last word of each batch.
"""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

SAMPLES = 8


class Samples(Dataset):
    def __init__(self, batches, sample_bytes):
        self.count = batches * SAMPLES
        self.sample = torch.zeros(sample_bytes // 8, dtype=torch.int64)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.sample, index


class StartWorker:
    def __init__(self, strategy):
        self.strategy = strategy

    def __call__(self, _worker):
        torch.multiprocessing.set_sharing_strategy(self.strategy)
        torch.set_num_threads(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--batches", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--strategy", default="file_descriptor")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy(args.strategy)
    warm = max(10, args.batches // 5)
    loader = DataLoader(Samples(args.batches + warm, args.bytes // SAMPLES), batch_size=SAMPLES, num_workers=args.workers,
                        worker_init_fn=StartWorker(args.strategy))
    start = None
    for number, (batch, indices) in enumerate(loader):
        if number == warm:
            start = time.perf_counter()
        assert int(indices[0]) == number * SAMPLES and int(batch[0, 0]) == 0 and int(batch[-1, -1]) == 0
    seconds = time.perf_counter() - start
    print(args.batches * args.bytes / seconds)


if __name__ == "__main__":
    main()
