# SPDX-License-Identifier: Apache-2.0
"""Lightning: two epochs of Trainer.fit, with workers that stay."""

import logging
import warnings

import lightning
import torch
from torch.utils.data import DataLoader

from common import BATCH, LOADER, Samples, Small, say, say_learned, start


class Learner(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Small()

    def training_step(self, batch, number):
        samples, wanted = batch
        say(f"batch {number}", samples, wanted)
        return torch.nn.functional.mse_loss(self.model(samples), wanted)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    start()
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    learner = Learner()
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    trainer.fit(learner, DataLoader(Samples(), batch_size=BATCH, shuffle=True, persistent_workers=True, **LOADER))
    say_learned(learner)


if __name__ == "__main__":
    main()
