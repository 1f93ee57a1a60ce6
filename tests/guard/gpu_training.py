# SPDX-License-Identifier: Apache-2.0
"""A small residual network, trained on synthetic images in mixed precision: prints its losses, to the bit, and the time of each epoch.

    python3 tests/guard/gpu_training.py [--epochs N] [--workers N] [--new-workers]

Run plainly and under the guard on a machine with a GPU, it must print the same losses.
"""

import argparse
import hashlib
import os
import struct
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before CUDA is started: sums in one order

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        label = index % 10
        image = torch.empty(3, 96, 96)
        image[:, ::2].uniform_(generator=generator)
        image[:, 1::2] = image[:, ::2] * (0.5 + 0.05 * label)
        return image, label


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                                  nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.short = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def network():
    return nn.Sequential(Block(3, 32, 2), Block(32, 64, 2), Block(64, 128, 2), Block(128, 256, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(256, 10))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--images", type=int, default=16384)
    parser.add_argument("--new-workers", action="store_true", help="in each epoch, as is PyTorch's default")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu-training: skipped, there is no GPU that PyTorch could use")
        return 77
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
    model = network().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    loader = DataLoader(Images(args.images), batch_size=args.batch, shuffle=True, num_workers=args.workers, pin_memory=True,
                        persistent_workers=not args.new_workers, generator=torch.Generator().manual_seed(2))
    losses, seconds = [], []
    for _ in range(args.epochs):
        start = time.perf_counter()
        for images, labels in loader:
            images = images.to("cuda", non_blocking=True)
            labels = labels.to("cuda", non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = nn.functional.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.detach())
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    losses = [float(loss) for loss in losses]
    digest = hashlib.sha256(b"".join(struct.pack("<d", loss) for loss in losses)).hexdigest()[:16]
    print(f"gpu-training: {len(losses)} losses, {losses[0]:.6f} to {losses[-1]:.6f}, digest {digest}; epochs of "
          + ", ".join(f"{second:.2f} s" for second in seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
