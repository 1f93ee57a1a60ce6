# SPDX-License-Identifier: Apache-2.0
"""timm: its loader with augmentation and its own collate function."""

import timm.data
import torch
import torchvision

from common import BATCH, LOADER, say, start

SIZE = 224


class Pictures(torchvision.datasets.FakeData):
    """As timm's own datasets: the loader sets the transform."""

    def __init__(self):
        super().__init__(size=240, image_size=(3, SIZE, SIZE), num_classes=10, random_offset=1)


def main():
    start()
    loader = timm.data.create_loader(Pictures(), input_size=(3, SIZE, SIZE), batch_size=3 * BATCH, is_training=True,
                                     use_prefetcher=False, auto_augment="rand-m9-mstd0.5", num_workers=LOADER["num_workers"],
                                     persistent_workers=False, device=torch.device("cpu"))
    for pictures, classes in loader:
        say("batch", pictures, classes)


if __name__ == "__main__":
    main()
