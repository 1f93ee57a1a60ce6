# SPDX-License-Identifier: Apache-2.0
"""A training with the shape of PyTorch's, for interpreters that have none: where_stub.py list|extension|tracemalloc SECONDS LIBRARY

Its workers leak under the line that ends with "# leaks: KIND". The search must find it in every version of CPython that it knows.
"""

import ctypes
import multiprocessing
import queue
import sys
import time
import tracemalloc
import types

PIECE = 1 << 16


def module(name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made
    return made


class DataLoader:
    pass


class Module:
    pass


class Samples:
    def __init__(self, kind, library):
        self.kind = kind
        self.kept = []
        self.library = ctypes.PyDLL(library)

    def load(self, index):
        if self.kind == "extension":
            self.library.leak(ctypes.c_size_t(PIECE))  # leaks: extension
        else:
            self.kept.append("%09d " % index * (PIECE // 10))  # leaks: list
        return index


def _worker_loop(dataset, index_queue, data_queue, worker_id):
    if dataset.kind == "tracemalloc":
        tracemalloc.start()
    while True:
        index = index_queue.get(timeout=60)
        if index is None:
            return
        time.sleep(0.01)
        data_queue.put((index, dataset.load(index)))


def main(kind, seconds, library):
    module("torch.multiprocessing.reductions")
    module("torch.utils.data.dataloader", DataLoader=DataLoader)
    module("torch.nn.modules.module", Module=Module)
    module("torch.utils.data._utils.worker", _worker_loop=_worker_loop)
    orders = [multiprocessing.Queue(), multiprocessing.Queue()]
    answers = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=_worker_loop, args=(Samples(kind, library), order, answers, number))
               for number, order in enumerate(orders)]
    for worker in workers:
        worker.start()
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        for order in orders:
            order.put(count)
            count += 1
        for _ in orders:
            try:
                answers.get(timeout=60)
            except queue.Empty:
                sys.exit("a worker does not answer")
    for order in orders:
        order.put(None)
    for worker in workers:
        worker.join()
    print(sum(worker.exitcode for worker in workers))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3])
