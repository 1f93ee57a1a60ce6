# SPDX-License-Identifier: Apache-2.0
"""transformers: Trainer.train with its own loader."""

import tempfile

import torch
from transformers import PrinterCallback, Trainer, TrainingArguments

from common import BATCH, LOADER, SAMPLES, Samples, Small, say, say_learned, start


class Learner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Small()

    def forward(self, samples, labels):
        say("batch", samples, labels)
        answers = self.model(samples)
        return {"loss": torch.nn.functional.mse_loss(answers, labels), "logits": answers}


class Named(Samples):
    def __getitem__(self, number):
        samples, labels = super().__getitem__(number)
        return {"samples": samples, "labels": labels}


def main():
    start()
    learner = Learner()
    with tempfile.TemporaryDirectory() as directory:
        arguments = TrainingArguments(directory, per_device_train_batch_size=BATCH, max_steps=SAMPLES // BATCH, use_cpu=True, report_to=[],
                                      save_strategy="no", logging_steps=5, disable_tqdm=True, learning_rate=0.01,
                                      dataloader_num_workers=LOADER["num_workers"],
                                      dataloader_prefetch_factor=LOADER["prefetch_factor"])
        trainer = Trainer(learner, arguments, train_dataset=Named())
        trainer.remove_callback(PrinterCallback)  # which prints times
        trainer.train()
    print("losses", [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
    say_learned(learner)


if __name__ == "__main__":
    main()
