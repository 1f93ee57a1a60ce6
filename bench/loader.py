# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader, plain and under the guard, in interleaved rounds on the same machine.

    python3 bench/loader.py PROGRAM [--rounds N] [--quick]

For each load it prints the median and the spread (min to max) of both sides and of their ratio, round by round, with a plain memcpy of
the same size beside them as the limit, and the most memory that the whole job took: of all its processes together where a memory
control group can be made for it, and of shared memory alone everywhere. Ratios are what counts: absolute rates are the machine's.
Fails when a target is missed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

LOAD = pathlib.Path(__file__).resolve().parent / "load.py"
MIB = 1 << 20
# name, bytes of a batch, batches, workers, strategy, the ratio to reach
LOADS = [
    ("32 MiB, 1 worker", 32 * MIB, 160, 1, "file_descriptor", 4.0),
    ("32 MiB, 2 workers", 32 * MIB, 160, 2, "file_descriptor", 3.0),
    ("9 MiB, 2 workers", 9 * MIB, 400, 2, "file_descriptor", 1.5),
    ("32 MiB, 2 workers, file_system", 32 * MIB, 160, 2, "file_system", 3.0),
    ("128 KiB, 2 workers", MIB // 8, 4000, 2, "file_descriptor", 0.95),
]


class PeakShmem(threading.Thread):
    """The machine's shared memory beyond what it was at the start, sampled often."""

    SECONDS = 0.01

    def __init__(self):
        super().__init__(daemon=True)
        self.start_bytes = self.read()
        self.peak = 0
        self.over = threading.Event()

    @staticmethod
    def read():
        with open("/proc/meminfo") as meminfo:
            return next(int(line.split()[1]) * 1024 for line in meminfo if line.startswith("Shmem:"))

    def run(self):
        while not self.over.wait(self.SECONDS):
            self.peak = max(self.peak, self.read() - self.start_bytes)


class Group:
    """A memory control group for one job, which tells the most memory that all of it took; without one, None."""

    def __init__(self):
        old = pathlib.Path("/sys/fs/cgroup/memory")
        self.path = (old if old.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"shmguard-bench-{os.getpid()}"
        self.peak_file = self.path / ("memory.max_usage_in_bytes" if old.is_dir() else "memory.peak")
        try:
            self.path.mkdir()
            self.peak_file.read_text()
            self.made = True
        except OSError:
            self.made = False

    def within(self, command):
        return ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs; exec "$@"', "sh", *command] if self.made else command

    def close(self):
        """The peak in bytes."""
        if not self.made:
            return None
        peak = int(self.peak_file.read_text())
        for _ in range(200):  # its last process may still be on its way out
            try:
                self.path.rmdir()
                break
            except OSError:
                time.sleep(0.05)
        return peak


def measure(command):
    """The rate, and the most shared memory and memory in all."""
    watch = PeakShmem()
    group = Group()
    watch.start()
    done = subprocess.run(group.within(command), stdout=subprocess.PIPE, check=True)
    watch.over.set()
    watch.join()
    return float(done.stdout), watch.peak, group.close()


def memcpy_rate(size):
    source = bytearray(size)
    target = bytearray(size)
    best = float("inf")
    for _ in range(12):
        start = time.perf_counter()
        target[:] = source
        best = min(best, time.perf_counter() - start)
    return size / best


def spread(values, unit=""):
    return f"{statistics.median(values):6.2f}{unit} ({min(values):.2f} to {max(values):.2f})"


class Side:
    def __init__(self):
        self.rates, self.shared, self.all = [], [], []

    def add(self, rate, shared, everything):
        self.rates.append(rate / 2**30)
        self.shared.append(shared / MIB)
        if everything is not None:
            self.all.append(everything / MIB)

    def __str__(self):
        of_all = f"{statistics.median(self.all):.0f} MiB in all" if self.all else "memory in all unknown"
        return f"{spread(self.rates)} GiB/s   at most {of_all}, {statistics.median(self.shared):.0f} MiB of it shared"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    missed = []
    for name, size, batches, workers, strategy, target in LOADS:
        load = [args.python, "-W", "ignore", str(LOAD), "--bytes", str(size), "--batches", str(batches),
                "--workers", str(workers), "--strategy", strategy]
        plain, guard = Side(), Side()
        for _ in range(args.rounds):
            for side, command in ((plain, load), (guard, [args.program, "run", "--quiet", "--", *load])):
                side.add(*measure(command))
        ratios = [under / without for under, without in zip(guard.rates, plain.rates)]
        reached = statistics.median(ratios) >= target
        print(f"{name}\n  plain  {plain}\n  guard  {guard}\n"
              f"  memcpy {memcpy_rate(size) / 2**30:6.2f} GiB/s\n"
              f"  ratio  {spread(ratios)}, target {target}: {'reached' if reached else 'MISSED'}", flush=True)
        if not reached:
            missed.append(name)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
