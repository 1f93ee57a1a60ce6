# SPDX-License-Identifier: Apache-2.0
"""Lightning with shmguard.Monitor as a callback: marks_lightning.py MODULE, which has two names."""

import importlib
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import shmguard

lightning = importlib.import_module(sys.argv[1])


class Learner(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(4, 1)

    def training_step(self, batch, number):
        return self.model(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    monitor = shmguard.Monitor(step_seconds=0)
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, callbacks=[monitor.lightning()])
    trainer.fit(Learner(), DataLoader(TensorDataset(torch.ones(12, 4)), batch_size=4))


if __name__ == "__main__":
    main()
