# SPDX-License-Identifier: Apache-2.0
"""Lightning: two processes that average their gradients, each with loaders of its own, started by its launcher."""

import logging
import warnings

import lightning
from torch.utils.data import DataLoader

from common import BATCH, LOADER, Samples, say_learned, start
from with_lightning import Learner


class Silent(Learner):
    """The lines of two processes would come in any order: what they learned together says the same."""

    def training_step(self, batch, number):
        samples, wanted = batch
        return ((self.model(samples) - wanted) ** 2).mean()

    def on_train_batch_end(self, outputs, batch, number):
        if self.global_rank == 0:
            say_learned(self)


def main():
    start()
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "lightning.fabric", "torch.distributed"):
        logging.getLogger(name).setLevel(logging.ERROR)
    learner = Silent()
    trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp_fork", max_epochs=2, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(learner, DataLoader(Samples(), batch_size=BATCH, shuffle=True, **LOADER))
    say_learned(learner)


if __name__ == "__main__":
    main()
