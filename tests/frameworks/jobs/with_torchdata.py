# SPDX-License-Identifier: Apache-2.0
"""torchdata: a StatefulDataLoader that stops in the middle, and another that goes on from there."""

from torchdata.stateful_dataloader import StatefulDataLoader

from common import BATCH, LOADER, Samples, say, start


def make_loader():
    return StatefulDataLoader(Samples(), batch_size=BATCH, shuffle=True, snapshot_every_n_steps=1, **LOADER)


def main():
    start()
    first = make_loader()
    for number, batch in enumerate(first):
        say("batch", *batch)
        if number == 8:
            state = first.state_dict()
            break
    second = make_loader()
    second.load_state_dict(state)
    for batch in second:
        say("batch after the stop", *batch)


if __name__ == "__main__":
    main()
