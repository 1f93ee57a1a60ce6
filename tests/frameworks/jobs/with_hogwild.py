# SPDX-License-Identifier: Apache-2.0
"""Plain torch.multiprocessing: two processes train one shared model. They take turns, so that the result is the same each time."""

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader

from common import LOADER, Samples, say, say_learned, start

TURNS = 20


class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(1024, 8192)  # 32 MiB, and as much for its gradient
        self.out = torch.nn.Linear(8192, 1)

    def forward(self, samples):
        return self.out(self.inner(samples.reshape(len(samples), 256, 1024).mean(1)).relu())


def train(rank, model, turns, lines):
    start()
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = DataLoader(Samples(), batch_size=2, shuffle=True, **LOADER)
    for (samples, wanted), turn in zip(loader, range(TURNS)):
        turns[rank].acquire()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(samples), wanted)
        loss.backward()
        optimizer.step()
        lines.put((turn, rank, loss.detach()))
        turns[1 - rank].release()


def main():
    start()
    model = Wide()
    model.share_memory()
    lines = mp.Queue()
    turns = [mp.Semaphore(1), mp.Semaphore(0)]
    ranks = [mp.Process(target=train, args=(rank, model, turns, lines)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for _, _, loss in sorted((lines.get(timeout=120) for _ in range(2 * TURNS)), key=lambda line: line[:2]):
        say("loss", loss)
    for rank in ranks:
        rank.join()
        assert rank.exitcode == 0
    say_learned(model)


if __name__ == "__main__":
    main()
