# SPDX-License-Identifier: Apache-2.0
"""Loads batches while something remembers earlier ones, and prints how many arrived wrong. Run by test_identity.py.

    python3 identity.py CASE
"""

import ctypes
import multiprocessing.resource_sharer
import sys
import tempfile

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

WORDS = 1 << 18
BATCHES = 24
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Numbers(Dataset):
    def __len__(self):
        return BATCHES

    def __getitem__(self, i):
        return torch.full((WORDS,), float(i))


def is_wrong(tensor, number):
    return tensor.numel() != WORDS or not bool((tensor == number).all())


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


def load(remember, dataset=Numbers, collate=None):
    """Calls remember(number, batch) for each batch and counts the batches that are wrong when they arrive."""
    wrong = 0
    for number, batch in enumerate(DataLoader(dataset(), batch_size=1, num_workers=1, collate_fn=collate)):
        wrong += is_wrong(batch, number)
        remember(number, batch)
        del batch
    return wrong


@case
def shared_by_name():
    """Gives a live storage other memory, which releases the memory that it was received with."""
    storage_of(torch.zeros(8))._share_filename_cpu_()  # starts the manager now, or it would inherit the batch's descriptor
    kept = []

    def remember(number, batch):
        if number % 8 == 0:
            storage_of(batch)._share_filename_cpu_()
            kept.append(batch)

    return load(remember) + sum(is_wrong(batch, 8 * i) for i, batch in enumerate(kept))


@case
def swapped():
    """Gives a live storage other memory through PyTorch's own function for that."""
    kept = []

    def remember(number, batch):
        if number % 8 == 0:
            batch.untyped_storage()._swap_data_ptr_(torch.zeros(WORDS).untyped_storage())
            kept.append(batch)

    return load(remember)


def receive(inbox, outbox, kept):
    for number in range(BATCHES):
        tensor = inbox.get()
        outbox.put(int(tensor.untyped_storage().nbytes() != WORDS * 4 or is_wrong(tensor, number)))
        del tensor


@case
def emptied():
    """A storage without memory, and a child that inherits what PyTorch remembers about it."""
    kept = torch.zeros(WORDS).share_memory_().untyped_storage()
    mp.reductions.reduce_storage(kept)  # as sending it does
    multiprocessing.resource_sharer.stop()  # drops the descriptor that is waiting for its receiver
    kept.resize_(0)
    inbox, outbox = mp.Queue(), mp.Queue()
    child = mp.Process(target=receive, args=(inbox, outbox, kept))
    child.start()
    wrong = 0
    for number in range(BATCHES):
        inbox.put(torch.full((WORDS,), float(number)))
        wrong += outbox.get(timeout=120)
    child.join()
    return wrong


def collate_sparse(samples):
    dense = samples[0].reshape(512, 512)
    return dense.to_sparse(), dense.to_sparse_csr(), torch.nested.nested_tensor([dense[:200], dense[200:]])


@case
def sparse_and_nested():
    wrong, kept = 0, []
    loader = DataLoader(Numbers(), batch_size=1, num_workers=1, collate_fn=collate_sparse)
    for number, (coo, csr, nested) in enumerate(loader):
        kept = [*kept[-2:], (number, coo, csr, nested)]
        for sent, *tensors in kept:
            dense = [tensors[0].to_dense(), tensors[1].to_dense(), torch.cat(tensors[2].unbind())]
            wrong += sum(is_wrong(tensor.flatten(), sent) for tensor in dense)
    return wrong


@case
def exported():
    """Arrays and capsules made from a batch keep its memory, even after the tensor is dropped."""
    arrays, capsules = [], []

    def remember(number, batch):
        if number % 8 == 0:
            arrays.append(batch.numpy())
        if number % 8 == 4:
            capsules.append(torch.utils.dlpack.to_dlpack(batch))

    wrong = load(remember)
    wrong += sum(is_wrong(torch.from_numpy(array), 8 * i) for i, array in enumerate(arrays))
    return wrong + sum(is_wrong(torch.utils.dlpack.from_dlpack(capsule), 8 * i + 4) for i, capsule in enumerate(capsules))


@case
def beside_files():
    """Mapped files of the same size come and go between the batches."""
    with tempfile.NamedTemporaryFile() as file:
        torch.full((WORDS,), -1.0).numpy().tofile(file.name)
        torn = []

        def remember(number, batch):
            mapped = torch.from_file(file.name, shared=bool(number % 2), size=WORDS)
            torn.append(is_wrong(mapped, -1.0) or is_wrong(batch, number))

        return load(remember) + sum(torn)


@case
def protected():
    """When a program changes the protection of a batch's mapping, the change ends with the batch."""
    libc = ctypes.CDLL(None, use_errno=True)

    def remember(number, batch):
        if number % 8 == 0:
            assert libc.mprotect(ctypes.c_void_p(batch.data_ptr()), ctypes.c_size_t(WORDS * 4), 1) == 0
        else:
            batch.zero_()

    return load(remember)


if __name__ == "__main__":
    torch.set_num_threads(1)  # a forked child would wait for threads that it does not have
    print("wrong:", CASES[sys.argv[1]]())
