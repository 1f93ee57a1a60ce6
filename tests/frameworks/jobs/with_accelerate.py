# SPDX-License-Identifier: Apache-2.0
"""accelerate: a loop around a prepared loader."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from common import BATCH, LOADER, Samples, Small, say, say_learned, start


def main():
    start()
    accelerator = Accelerator(cpu=True)
    model = Small()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
                                                   DataLoader(Samples(), batch_size=BATCH, shuffle=True, **LOADER))
    for samples, wanted in loader:
        say("batch", samples, wanted)
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.mse_loss(model(samples), wanted))
        optimizer.step()
    say_learned(accelerator.unwrap_model(model))


if __name__ == "__main__":
    main()
