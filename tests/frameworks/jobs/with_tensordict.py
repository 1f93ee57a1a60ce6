# SPDX-License-Identifier: Apache-2.0
"""tensordict: dictionaries of tensors from workers, and one that two processes write."""

import tensordict
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader

from common import BATCH, LOADER, WORDS, Samples, say, start


class Dictionaries(Samples):
    def __getitem__(self, number):
        samples, wanted = super().__getitem__(number)
        return tensordict.TensorDict({"samples": samples, "more": {"wanted": wanted, "doubled": samples * 2}}, batch_size=[])


def write(shared, first):
    torch.set_num_threads(1)
    for row in range(first, BATCH, 2):
        shared["samples"][row] = row
        shared["more", "rows"][row] = -row


def main():
    start()
    for batch in DataLoader(Dictionaries(), batch_size=BATCH, collate_fn=torch.stack, **LOADER):
        say("batch", batch["samples"], batch["more", "wanted"], batch["more", "doubled"])
    shared = tensordict.TensorDict({"samples": torch.zeros(BATCH, WORDS), "more": {"rows": torch.zeros(BATCH, 1 << 17)}},
                                   batch_size=[BATCH]).share_memory_()
    writers = [mp.Process(target=write, args=(shared, first)) for first in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    say("written", shared["samples"], shared["more", "rows"])


if __name__ == "__main__":
    main()
