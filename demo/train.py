# SPDX-License-Identifier: Apache-2.0
"""A small real training: a convolutional network on made images, loaded by a multi-process DataLoader.

It stands for everybody's train.py in the demonstration, the tests and the benchmarks. Each image is filled with a byte
that follows from its index, so that whoever receives a batch can tell whether it is whole.
"""

import argparse
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count, side, strategy):
        self.count = count
        self.side = side
        self.strategy = strategy

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = torch.full((3, self.side, self.side), index % 251, dtype=torch.uint8)
        return image, index

    def start_worker(self, _worker):
        # Spawned workers begin with the default strategy, whatever the trainer has set.
        torch.multiprocessing.set_sharing_strategy(self.strategy)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--side", type=int, default=256, help="of a square image with 3 channels, in pixels")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--start-method", choices=["fork", "spawn", "forkserver"], default="fork")
    parser.add_argument("--strategy", choices=["file_descriptor", "file_system"], default="file_descriptor")
    parser.add_argument("--check-every", type=int, default=1, metavar="N", help="look at every byte of each N-th batch only")
    parser.add_argument("--hold", type=float, metavar="SECONDS",
                        help="after the first steps keep the batches, print 'holding' and sleep")
    return parser.parse_args()


def main():
    args = options()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.multiprocessing.set_sharing_strategy(args.strategy)
    images = Images(args.steps * args.batch, args.side, args.strategy)
    loader = DataLoader(images, batch_size=args.batch, num_workers=args.workers,
                        worker_init_fn=images.start_worker,
                        multiprocessing_context=args.start_method if args.workers else None)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=4), torch.nn.ReLU(),
                                torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    kept = []
    warm = args.steps // 4
    for step, (batch, indices) in enumerate(loader):
        if step == warm:
            start = time.perf_counter()
        expected = (indices % 251).to(torch.uint8).view(-1, 1, 1, 1)
        if step % args.check_every == 0 and not bool((batch == expected).all()):
            sys.exit(f"step {step}: a batch arrived corrupt")
        loss = model(batch[:, :, ::8, ::8].float() / 255).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.hold is not None:
            kept.append((batch, indices))
            if len(kept) == 2:
                print("holding", flush=True)
                time.sleep(args.hold)
                return
    rate = (args.steps - warm) / (time.perf_counter() - start)
    print(f"finished {args.steps} steps, loss {loss.item():.6f}, {rate:.1f} batches per second "
          f"({rate * batch.numel() / 2**30:.2f} GiB/s)")


if __name__ == "__main__":
    main()
