# SPDX-License-Identifier: Apache-2.0
"""A training with the shape of PyTorch's, for interpreters that have none: where_stub.py KIND SECONDS LIBRARY [--clean]

list, extension   its workers leak under the line that ends with "# leaks: KIND". The search must find it in every version of CPython that it knows.
forks             a leak of both kinds, and each sample forks a child that allocates, frees, and must not be traced.
ends              a leak of both kinds, in workers that end in every way, at any moment of a search, and have successors.

Prints the sum of the workers' exit codes, of those that were not killed. --clean: a worker in which something of a search is left at its end exits
with 1.
"""

import argparse
import ctypes
import multiprocessing
import os
import queue
import random
import signal
import sys
import time
import tracemalloc
import types

PIECE = 1 << 16
LIFE_SECONDS = 6.0


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
        if self.kind != "list":
            self.library.leak(ctypes.c_size_t(PIECE))  # leaks: extension
        if self.kind != "extension":
            self.kept.append("%09d " % index * (PIECE // 10))  # leaks: list
        if self.kind == "forks":
            fork_once(self.library)
        return index


def fork_once(library):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            library.leak(ctypes.c_size_t(PIECE))
        os._exit(1 if tracemalloc.is_tracing() else 0)
    if os.waitpid(child, 0)[1] != 0:
        os._exit(3)


def is_clean():
    left = [name for name in vars(sys.modules["torch.multiprocessing.reductions"]) if name.startswith("_shmguard") and name != "_shmguard_forked"]
    return not left and not tracemalloc.is_tracing()


def _worker_loop(dataset, index_queue, data_queue, worker_id, clean):
    if dataset.kind == "tracemalloc":
        tracemalloc.start()
    while True:
        index = index_queue.get(timeout=60)
        if index is None:
            sys.exit(1 if clean and not is_clean() else 0)
        time.sleep(0.01)
        data_queue.put((index, dataset.load(index)))


class Worker:
    def __init__(self, args, number):
        self.orders, self.answers = multiprocessing.Queue(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=_worker_loop, args=(Samples(args.kind, args.library), self.orders, self.answers, number, args.clean))
        self.process.start()
        self.until = time.monotonic() + random.uniform(0.1, LIFE_SECONDS)

    def work(self, index):
        self.orders.put(index)
        try:
            if self.answers.get(timeout=60) != (index, index):
                sys.exit("an answer is wrong")
        except queue.Empty:
            sys.exit("a worker does not answer")

    def end(self):
        self.orders.put(None)
        self.process.join()
        return self.process.exitcode

    def end_somehow(self, index):
        way = random.choice((signal.SIGKILL, signal.SIGTERM, None))
        self.orders.put(index)
        time.sleep(random.uniform(0, 0.02))
        if way:
            os.kill(self.process.pid, way)
            self.process.join()
            return 0 if self.process.exitcode == -way else 1
        return self.end()


def main(args):
    multiprocessing.set_start_method("fork")
    module("torch.multiprocessing.reductions")
    module("torch.utils.data.dataloader", DataLoader=DataLoader)
    module("torch.nn.modules.module", Module=Module)
    module("torch.utils.data._utils.worker", _worker_loop=_worker_loop)
    workers = [Worker(args, number) for number in range(2)]
    until = time.monotonic() + args.seconds
    count = codes = 0
    while time.monotonic() < until:
        for number, worker in enumerate(workers):
            worker.work(count)
            count += 1
            if args.kind == "ends" and time.monotonic() > worker.until:
                codes += worker.end_somehow(count)
                workers[number] = Worker(args, number)
    print(codes + sum(worker.end() for worker in workers))


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("kind")
parser.add_argument("seconds", type=float)
parser.add_argument("library")
parser.add_argument("--clean", action="store_true")

if __name__ == "__main__":
    main(parser.parse_args())
