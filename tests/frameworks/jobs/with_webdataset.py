# SPDX-License-Identifier: Apache-2.0
"""webdataset: samples from tar files, batched in the workers."""

import pathlib
import tempfile

import torch
import webdataset

from common import BATCH, LOADER, SAMPLES, Small, sample, say, say_learned, start

SHARDS = 4


def write_shards(directory):
    paths = [str(pathlib.Path(directory) / f"{shard}.tar") for shard in range(SHARDS)]
    for shard, path in enumerate(paths):
        with webdataset.TarWriter(path) as writer:
            for number in range(shard, SAMPLES, SHARDS):
                writer.write({"__key__": f"{number:04}", "npy": sample(number).numpy(), "cls": number})
    return paths


def main():
    start()
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tempfile.TemporaryDirectory() as directory:
        dataset = webdataset.WebDataset(write_shards(directory), shardshuffle=False).decode().to_tuple("npy", "cls").batched(BATCH)
        for samples, numbers in webdataset.WebLoader(dataset, batch_size=None, **LOADER):
            samples, numbers = torch.as_tensor(samples), torch.as_tensor(numbers)
            say("batch", samples, numbers)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(samples), numbers[:, None] / SAMPLES).backward()
            optimizer.step()
    say_learned(model)


if __name__ == "__main__":
    main()
