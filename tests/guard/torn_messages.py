# SPDX-License-Identifier: Apache-2.0
"""Kills the workers of DataLoaders while they send, and looks at what they left in the pipe: whole messages, or half ones?

    python torn_messages.py [--rounds N] [--seed N] [--arrays]

Prints how many pipes ended in the middle of a message. With --arrays the batches are numpy arrays. Without the lane these are larger than
the pipe, and some are torn.
"""

import argparse
import os
import random
import signal
import struct
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Batches(Dataset):
    def __init__(self, arrays):
        self.arrays = arrays

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        if self.arrays:
            return numpy.zeros(4 << 20, numpy.uint8)
        return [torch.full((255 + index % 7,), index) for _ in range(50)]  # 100 KiB: more than one message may have


def as_it_is(batch):
    return batch


def rest_of(pipe):
    """Bytes of a last message that is not whole."""
    os.set_blocking(pipe, False)
    data = bytearray()
    try:
        while True:
            data += os.read(pipe, 1 << 20)
    except BlockingIOError:
        pass
    messages = 0
    while len(data) >= 4:
        size = struct.unpack("!i", data[:4])[0]
        if len(data) < 4 + size:
            break
        del data[: 4 + size]
        messages += 1
    return messages, len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arrays", action="store_true")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    torch.set_num_threads(1)
    torn = left = 0
    for _ in range(args.rounds):
        workers = rng.randint(1, 3)
        loader = DataLoader(Batches(args.arrays), batch_size=None, num_workers=workers, prefetch_factor=rng.randint(1, 12),
                            collate_fn=as_it_is)
        iterator = iter(loader)
        for _ in range(rng.randint(1, 30)):
            next(iterator)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # PyTorch's handler would raise its error here
        time.sleep(rng.random() * 0.01)
        for worker in iterator._workers:
            os.kill(worker.pid, signal.SIGKILL)
        for worker in iterator._workers:
            worker.join()
        messages, rest = rest_of(iterator._worker_result_queue._reader.fileno())
        torn += rest > 0
        left += messages
        iterator._workers_status = [False] * workers  # there is none to be told that it is over
        iterator._shutdown = True
        torch.utils.data._utils.signal_handling._remove_worker_pids(id(iterator))
        iterator._worker_pids_set = False
    print(f"{torn} of {args.rounds} pipes ended within a message; {left} whole messages were left")


if __name__ == "__main__":
    main()
