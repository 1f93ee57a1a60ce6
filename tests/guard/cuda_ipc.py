# SPDX-License-Identifier: Apache-2.0
"""CUDA tensors through queues, both ways: their reference counters are shared memory that is opened by name.

Run on a machine with a GPU, plainly and under the guard: cuda_ipc.py [ROUNDS]. Every value is checked.
"""

import sys

import torch
import torch.multiprocessing as mp

SIZE = 1 << 20


def double(inbox, outbox):
    while True:
        item = inbox.get()
        if item is None:
            return
        number, tensor = item
        assert bool((tensor == number).all()), f"tensor {number} is wrong in the child"
        result = tensor * 2
        outbox.put((number, result))
        del tensor, item, result


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    context = mp.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    children = [context.Process(target=double, args=(inbox, outbox)) for _ in range(2)]
    for child in children:
        child.start()
    kept = []
    for number in range(rounds):
        tensor = torch.full((SIZE,), number, dtype=torch.int32, device="cuda")
        inbox.put((number, tensor))
        kept.append(tensor)
        if len(kept) == 8:
            for _ in range(8):
                index, result = outbox.get()
                assert bool((result == 2 * index).all()), f"tensor {index} is wrong in the parent"
                del result
            kept.clear()
    for _ in kept:
        outbox.get()
    for child in children:
        inbox.put(None)
    for child in children:
        child.join()
        assert child.exitcode == 0, child.exitcode
    print(f"cuda-ipc: {rounds} tensors there and back, every value right")


if __name__ == "__main__":
    main()
