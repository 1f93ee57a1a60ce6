# SPDX-License-Identifier: Apache-2.0
"""A script that starts workers by spawn without `if __name__ == "__main__":`."""
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=4, num_workers=2, multiprocessing_context="spawn")
for batch in loader:
    print(len(batch))
