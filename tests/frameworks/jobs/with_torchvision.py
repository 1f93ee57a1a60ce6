# SPDX-License-Identifier: Apache-2.0
"""torchvision: images and transforms in the workers."""

import torch
import torchvision
from torch.utils.data import DataLoader

from common import BATCH, LOADER, say, say_learned, start

SIZE = 224


def main():
    start()
    images = torchvision.datasets.FakeData(size=160, image_size=(3, SIZE, SIZE), num_classes=10, random_offset=1,
                                           transform=torchvision.transforms.ToTensor())
    model = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for pictures, classes in DataLoader(images, batch_size=2 * BATCH, shuffle=True, **LOADER):
        say("batch", pictures, classes)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures), classes).backward()
        optimizer.step()
    say_learned(model)


if __name__ == "__main__":
    main()
