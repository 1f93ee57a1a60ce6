# SPDX-License-Identifier: Apache-2.0
"""torch_geometric: graphs of several tensors each, put together in the workers."""

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

from common import BATCH, LOADER, SAMPLES, Samples, sample, say, say_learned, start

NODES = 1024


class Graphs(Samples):
    def __getitem__(self, number):
        start_node = torch.arange(4 * NODES)
        edges = torch.stack([start_node % NODES, (start_node * 7 + number) % NODES])
        return Data(x=sample(number).reshape(NODES, -1), edge_index=edges, y=torch.tensor([[number / SAMPLES]]))


class Learner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.around = GCNConv(256, 8)
        self.out = torch.nn.Linear(8, 1)

    def forward(self, graphs):
        return self.out(global_mean_pool(self.around(graphs.x, graphs.edge_index).relu(), graphs.batch))


def main():
    start()
    model = Learner()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for graphs in DataLoader(Graphs(), batch_size=BATCH, shuffle=True, **LOADER):
        say("batch", graphs.x, graphs.edge_index, graphs.y, graphs.batch, graphs.ptr)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(graphs), graphs.y).backward()
        optimizer.step()
    say_learned(model)


if __name__ == "__main__":
    main()
