# SPDX-License-Identifier: Apache-2.0
"""MONAI: volumes with transforms, whose tensors are of a class of their own."""

import torch
from monai.data import DataLoader, Dataset, MetaTensor
from monai.transforms import Compose, RandFlipd, ScaleIntensityd

from common import BATCH, LOADER, SAMPLES, Small, sample, say, say_learned, start


class Volumes(Dataset):
    def __init__(self):
        super().__init__(range(SAMPLES), Compose([ScaleIntensityd("volume"), RandFlipd("volume", prob=0.5)]))

    def _transform(self, number):
        volume = MetaTensor(sample(number).reshape(1, 64, 64, 64), meta={"number": number})
        return self.transform({"volume": volume, "number": torch.tensor([number / SAMPLES])})


def main():
    start()
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Volumes(), batch_size=BATCH, shuffle=True, **LOADER):
        say("batch", batch["volume"].as_tensor(), batch["number"], batch["volume"].affine)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch["volume"].as_tensor()), batch["number"]).backward()
        optimizer.step()
    say_learned(model)


if __name__ == "__main__":
    main()
