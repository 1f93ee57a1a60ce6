# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer with shmguard.Monitor as a callback."""

import tempfile

import torch
from transformers import Trainer, TrainingArguments

import shmguard


class Learner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(4, 1)

    def forward(self, samples):
        return {"loss": self.model(samples).square().mean()}


def main():
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(directory, per_device_train_batch_size=4, num_train_epochs=2, use_cpu=True, report_to=[], save_strategy="no",
                                      disable_tqdm=True)
        monitor = shmguard.Monitor(step_seconds=0)
        Trainer(Learner(), arguments, train_dataset=[{"samples": torch.ones(4)}] * 12, callbacks=[monitor.transformers()]).train()


if __name__ == "__main__":
    main()
