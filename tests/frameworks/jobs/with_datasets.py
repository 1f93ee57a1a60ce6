# SPDX-License-Identifier: Apache-2.0
"""datasets: rows of Arrow files as tensors."""

import tempfile

import datasets
import torch
from torch.utils.data import DataLoader

from common import BATCH, LOADER, SAMPLES, Small, sample, say, say_learned, start


def rows():
    for number in range(SAMPLES):
        yield {"sample": sample(number).numpy(), "number": number}


def main():
    start()
    datasets.disable_progress_bars()
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tempfile.TemporaryDirectory() as directory:
        table = datasets.Dataset.from_generator(rows, cache_dir=directory).with_format("torch")
        for batch in DataLoader(table, batch_size=BATCH, shuffle=True, **LOADER):
            say("batch", batch["sample"], batch["number"])
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(batch["sample"]), batch["number"][:, None] / SAMPLES).backward()
            optimizer.step()
    say_learned(model)


if __name__ == "__main__":
    main()
