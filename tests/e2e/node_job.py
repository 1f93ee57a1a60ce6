# SPDX-License-Identifier: Apache-2.0
"""A data-parallel training on several nodes, synchronized at every step, which marks its epochs in the recording."""

import argparse
import contextlib
import datetime
import os
import sqlite3
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--side", type=int, default=1024)
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--pause", type=float, default=0, help="seconds that each sample takes, as if it were read from somewhere")
parser.add_argument("--busy", type=float, default=0, help="seconds of computing for each sample of the last rank")
parser.add_argument("--kill", type=int, help="the rank that kills itself in its first attempt")
options = parser.parse_args()


class Images(Dataset):
    def __init__(self, busy):
        self.busy = busy

    def __len__(self):
        return options.steps * 8

    def __getitem__(self, index):
        time.sleep(options.pause)
        until = time.process_time() + self.busy
        while time.process_time() < until:
            pass
        return torch.full((1,), index % 256, dtype=torch.uint8).expand(3, options.side, options.side)  # only batches take memory


def mark(text):
    with contextlib.suppress(KeyError, sqlite3.Error), contextlib.closing(sqlite3.connect(os.environ["SHMGUARD_RECORDING"], 0.5)) as db, db:
        db.execute("INSERT INTO mark(text) VALUES (?)", [text])


torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(3, 1))
busy = options.busy if rank == ranks - 1 else 0
loader = DataLoader(Images(busy), batch_size=8, num_workers=options.workers)
first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0" and os.environ.get("SHMGUARD_ATTEMPT", "1") == "1"
for epoch in range(options.epochs):
    torch.distributed.barrier()
    mark(f"epoch {epoch}")
    kept = None
    for step, batch in enumerate(loader):
        model(batch[:, :, 0, 0].float() / 255).mean().backward()
        kept = batch
        if options.kill == rank and step == 3 and first:
            os.kill(os.getpid(), 9)
torch.distributed.barrier()
mark("end")
