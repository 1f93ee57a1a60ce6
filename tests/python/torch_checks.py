# SPDX-License-Identifier: Apache-2.0
"""What plan predicts is what a DataLoader shares, to the byte; and shared data serves as a dataset."""
import sys

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import shmguard

BATCH = 5


class Samples(Dataset):
    def __init__(self):
        self.names = shmguard.SharedList("sample {}".format(number) for number in range(40))

    def __len__(self):
        return len(self.names)

    def __getitem__(self, number):
        return {"image": torch.zeros(3, 7, 11), "mask": numpy.ones((7, 11), dtype="uint8"), "weight": 0.5, "number": number, "flag": True,
                "scalar": numpy.float32(2), "name": self.names[number], "pair": (torch.zeros((), dtype=torch.int16), torch.zeros(2, dtype=torch.bfloat16))}


class Stream(IterableDataset):
    def __iter__(self):
        return iter(Samples())


def tensors(batch):
    if isinstance(batch, torch.Tensor):
        yield batch
    elif not isinstance(batch, str):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from tensors(part)


def main():
    dataset = Samples()
    need = shmguard.plan(dataset[0], batch_size=BATCH, num_workers=2)["loaders"][0]
    settings = shmguard.loader_kwargs(dataset, BATCH, 2)
    assert shmguard.loader_kwargs(Stream(), BATCH, 2) == settings
    for number, batch in enumerate(DataLoader(dataset, **settings)):
        shared = list(tensors(batch))
        assert all(tensor.is_shared() for tensor in shared)
        assert (sum(tensor.numel() * tensor.element_size() for tensor in shared), len(shared)) == (need["payload_bytes"], need["segments"])
        assert batch["name"] == ["sample {}".format(number * BATCH + i) for i in range(BATCH)]
    assert number == 7


if __name__ == "__main__":
    sys.exit(main())
