# SPDX-License-Identifier: Apache-2.0
"""A training for bench/tune.py with one of three bottlenecks. It prints its rate, and runs until it is ended.

decode: each sample costs its worker CPU time. transport: samples are large, but cost nothing else. trainer: samples are small, and each step
of the trainer takes time.
"""

import argparse
import time

import torch
from torch.utils.data import DataLoader, IterableDataset

SAMPLE_BYTES = {"decode": 12 << 10, "transport": 1 << 20, "trainer": 12 << 10}


class Samples(IterableDataset):
    def __init__(self, kind):
        self.kind = kind
        self.sample = torch.zeros(SAMPLE_BYTES[kind], dtype=torch.uint8)

    def __iter__(self):
        number = 0
        while True:
            if self.kind == "decode":
                for _ in range(8000):  # CPU work like a decoder's, without its memory use
                    number = (number * 1103515245 + 12345) & 0x7FFFFFFF
            yield self.sample


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=sorted(SAMPLE_BYTES), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="from the first batch on")
    args = parser.parse_args()
    torch.set_num_threads(1)
    loader = DataLoader(Samples(args.kind), batch_size=args.batch, num_workers=args.workers,
                        worker_init_fn=lambda _: torch.set_num_threads(1))
    start = end = None
    samples = 0
    for batch in loader:
        if args.kind == "trainer":
            time.sleep(0.004 + 0.0002 * args.batch)  # a fixed cost per step, and a cost per sample
        samples += len(batch)
        now = time.perf_counter()
        if end is None:
            start, samples, end = now, 0, now + args.seconds
        if now >= end:
            break
        if now - start >= 0.2:
            print(f"rate: {samples / (now - start):.1f} samples/s")
            start, samples = now, 0


if __name__ == "__main__":
    main()
