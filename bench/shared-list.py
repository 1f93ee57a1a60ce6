# SPDX-License-Identifier: Apache-2.0
"""What it costs workers to read a dataset's records: a plain list, records packed into one NumPy array, and a SharedList.

Two forked workers read all records, in an order of their own. Measured are the private memory that each has gained, and the records read per
second of CPU time. The kinds take turns; medians, with minimum and maximum."""
import argparse
import multiprocessing
import pathlib
import pickle
import random
import statistics
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import shmguard  # noqa: E402

WORKERS = 2


def records(n):
    """Like the annotations of images: a few short strings and numbers each."""
    for number in range(n):
        yield {"file": "images/train/{:012d}.jpg".format(number), "id": number, "size": [640, 480], "label": number % 1000,
               "boxes": [[number % 600, 1.5, 2.5, 3.5], [1.0, number % 400, 3.0, 4.0]]}


class Packed:
    """What people write by hand: all pickles in one array, and another with where each begins."""

    def __init__(self, items):
        pickles = [pickle.dumps(item, pickle.HIGHEST_PROTOCOL) for item in items]
        self.ends = numpy.cumsum([len(one) for one in pickles])
        self.data = numpy.frombuffer(b"".join(pickles), dtype=numpy.uint8)

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, i):
        return pickle.loads(memoryview(self.data[self.ends[i - 1] if i else 0:self.ends[i]]))


KINDS = {"list": list, "packed": Packed, "SharedList": shmguard.SharedList}


def private_bytes():
    """Without shared mappings: a page of those that only one process has touched so far counts as private, too."""
    total, private = 0, False
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                private = words[1].endswith("p")
            elif private and words[0] in ("Private_Clean:", "Private_Dirty:"):
                total += int(words[1]) << 10
    return total


def read_all(data, reads, seed, start, results):
    chance = random.Random(seed)
    order = [chance.randrange(len(data)) for _ in range(reads)]
    start.wait()
    before = private_bytes()
    begun = time.process_time()
    total = 0
    for i in order:
        total += data[i]["label"]
    seconds = time.process_time() - begun
    results.put((private_bytes() - before, reads / seconds))


def measure(kind, n, reads):
    context = multiprocessing.get_context("fork")
    data = KINDS[kind](records(n))
    start, results = context.Barrier(WORKERS), context.SimpleQueue()
    workers = [context.Process(target=read_all, args=(data, reads, seed, start, results)) for seed in range(WORKERS)]
    for worker in workers:
        worker.start()
    found = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return statistics.mean(gained for gained, _ in found), statistics.mean(rate for _, rate in found)


def spread(values, form):
    return "{} ({} to {})".format(*(form(value) for value in (statistics.median(values), min(values), max(values))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200000)
    parser.add_argument("--reads", type=int, default=200000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    found = {kind: [] for kind in KINDS}
    for _ in range(arguments.rounds):
        for kind in KINDS:
            # In a process of its own: each kind begins with an empty heap.
            with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                found[kind].append(pool.apply(run, (kind, arguments.records, arguments.reads)))
    print("| {:,} records, {} workers, median of {} (min to max) | private memory gained per worker | reads per second of CPU time |".format(
        arguments.records, WORKERS, arguments.rounds))
    print("|---|---|---|")
    for kind, rows in found.items():
        print("| {} | {} | {} |".format(kind, spread([gained for gained, _ in rows], lambda value: "{:.1f} MiB".format(value / 2**20)),
                                         spread([rate for _, rate in rows], "{:,.0f}".format)))


def run(kind, n, reads):
    multiprocessing.process.current_process()._config["daemon"] = False  # a pool's process may not have children
    return measure(kind, n, reads)


if __name__ == "__main__":
    main()
