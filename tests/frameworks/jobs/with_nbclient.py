# SPDX-License-Identifier: Apache-2.0
"""nbclient: a notebook that trains, in a kernel of its own."""

import pathlib
import sys
import textwrap

import nbclient
import nbformat

CELLS = [
    "import sys; sys.argv[1:] = {strategy!r}; sys.path.insert(0, {directory!r})",
    """
    import torch
    from torch.utils.data import DataLoader, Dataset
    from common import BATCH, LOADER, SAMPLES, Small, sample, say, say_learned, start
    start()

    class FromTheNotebook(Dataset):
        def __len__(self):
            return SAMPLES
        def __getitem__(self, number):
            return sample(number), torch.tensor([number / SAMPLES])
    """,
    """
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for samples, wanted in DataLoader(FromTheNotebook(), batch_size=BATCH, shuffle=True, **LOADER):
        say("batch", samples, wanted)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(samples), wanted).backward()
        optimizer.step()
    say_learned(model)
    """,
]


def main():
    fill = {"strategy": sys.argv[1:], "directory": str(pathlib.Path(__file__).parent)}
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(cell).strip()) for cell in CELLS]
    cells[0]["source"] = cells[0]["source"].format(**fill)
    notebook = nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells:
        for output in cell.outputs:
            print(output.get("text", ""), end="")


if __name__ == "__main__":
    main()
