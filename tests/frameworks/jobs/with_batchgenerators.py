# SPDX-License-Identifier: Apache-2.0
"""batchgenerators: its own processes and queues, as nnU-Net uses them."""

import itertools

import numpy
from batchgenerators.dataloading.data_loader import SlimDataLoaderBase
from batchgenerators.dataloading.multi_threaded_augmenter import MultiThreadedAugmenter
from batchgenerators.transforms.utility_transforms import NumpyToTensor

from common import BATCH, LOADER, sample, say, start


class Volumes(SlimDataLoaderBase):
    made = 0

    def generate_train_batch(self):
        numbers = numpy.arange(BATCH) + BATCH * self.made + 1000 * self.thread_id
        self.made += 1
        return {"data": numpy.stack([sample(number).numpy().reshape(1, 64, 64, 64) for number in numbers]), "numbers": numbers}


def main():
    start()
    loader = MultiThreadedAugmenter(Volumes(None, BATCH, LOADER["num_workers"]), NumpyToTensor(), LOADER["num_workers"],
                                    num_cached_per_queue=8, seeds=[1, 2])
    for batch in itertools.islice(loader, 20):
        say("batch", batch["data"], batch["numbers"])
    loader._finish()


if __name__ == "__main__":
    main()
