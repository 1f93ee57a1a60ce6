# SPDX-License-Identifier: Apache-2.0
"""A training in miniature, for any Python 3: workers share tensors, with PyTorch where it is installed, otherwise with the calls that it makes."""
import ctypes
import mmap
import multiprocessing
import os

BATCHES, SIZE = 8, 1 << 20


def batch(number):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    name = "/torch_{}_{}".format(os.getpid(), number).encode()
    fd = libc.shm_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(fd, SIZE)
    address = libc.mmap(None, ctypes.c_size_t(SIZE), mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, ctypes.c_long(0))
    assert fd >= 0 and libc.shm_unlink(name) == 0
    ctypes.memset(address, number, SIZE)
    total = sum(ctypes.string_at(address, SIZE))
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(SIZE))
    os.close(fd)
    return total


def with_torch():
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(torch.ones(64 * BATCHES, SIZE // 64)), batch_size=64, num_workers=2)
    return sum(int(tensor.sum()) for tensor, in loader), BATCHES * SIZE


def without_torch():
    with multiprocessing.Pool(2) as pool:
        return sum(pool.map(batch, range(BATCHES))), sum(number * SIZE for number in range(BATCHES))


def main():
    try:
        found, wanted = with_torch()
    except ImportError:
        found, wanted = without_torch()
    assert found == wanted, (found, wanted)


if __name__ == "__main__":
    main()
