# SPDX-License-Identifier: Apache-2.0
"""What the jobs share: samples of 1 MiB that can be told apart, a small model, and digests of what arrived.

Each job takes the sharing strategy as its argument, loads batches of MiBs in two workers, and prints one line for each batch and for what
was learned. The lines of two runs are the same to the bit when every batch arrived whole.
"""

import hashlib
import sys

import torch
import torch.multiprocessing
from torch.utils.data import Dataset

WORDS = 1 << 18  # of a sample: 1 MiB
SAMPLES = 160
BATCH = 8
LOADER = {"num_workers": 2, "prefetch_factor": 8}  # 16 batches of 8 MiB at a time: twice what 64 MB hold


def start():
    """Makes the results depend on nothing but the job."""
    if len(sys.argv) > 1:
        torch.multiprocessing.set_sharing_strategy(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(1)


def sample(number):
    return (torch.arange(WORDS) % 1009 + number).float() / 1009


class Samples(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, number):
        return sample(number), torch.tensor([number / SAMPLES])


class Small(torch.nn.Module):
    """Looks at every word of a sample, quickly."""

    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(64, 1)

    def forward(self, samples):
        return self.out(samples.reshape(samples.shape[0], 64, -1).mean(-1))


def say(what, *tensors):
    """Prints a digest of the tensors."""
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(str((tensor.dtype, tuple(tensor.shape))).encode())
        total.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    print(what, total.hexdigest()[:16], flush=True)


def say_learned(model):
    say("learned", *model.parameters())
