# SPDX-License-Identifier: Apache-2.0
"""joblib: two trainings at a time in processes of loky, each with a loader of its own."""

import contextlib
import io
import sys

import joblib
import torch
from torch.utils.data import DataLoader

from common import BATCH, LOADER, Samples, Small, say, say_learned, start


def train(seed, strategy):
    sys.argv[1:] = strategy
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines):
        start()
        torch.manual_seed(seed)
        model = Small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        # In its processes loky is the default way to start others, and it has no workers for PyTorch.
        loader = DataLoader(Samples(), batch_size=BATCH, shuffle=True, multiprocessing_context="fork", **LOADER)
        for samples, wanted in loader:
            say(f"batch of {seed}", samples, wanted)
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(samples), wanted).backward()
            optimizer.step()
        say_learned(model)
    return lines.getvalue()


def main():
    start()
    for lines in joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(train)(seed, sys.argv[1:]) for seed in range(3)):
        print(lines, end="")


if __name__ == "__main__":
    main()
