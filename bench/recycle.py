# SPDX-License-Identifier: Apache-2.0
"""What is recycled where it is hardest: batches whose tensors differ in size, and workers that are new in every epoch.

    python3 bench/recycle.py PROGRAM [--rounds N]

Both sides run in turn. For each load it prints the share of tensors in recycled segments, and the median and spread (min to max) of
the peak of shared memory, of the processor time of all processes, and of page faults. Plainly, shared memory is what /dev/shm takes,
sampled often; under the guard it is what the supervisor counts. Fails when a target is missed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from loader import PeakShmem

LOAD = pathlib.Path(__file__).resolve().parent / "recycle-load.py"
MIB = 1 << 20
PEAK_RATIO = 1.3
# name, options, the share of recycled tensors to reach
LOADS = [
    ("16 images of 200 to 800 rows and columns", ["--batches", "200", "--low", "200", "--high", "800"], 0.95),
    ("16 images of 320 to 640 rows and columns", ["--batches", "200", "--low", "320", "--high", "640"], 0.95),
    ("6 epochs of 24 batches of 9 MiB", ["--epochs", "6", "--batches", "24", "--one", "--high", "220"], 0.9),
    ("6 epochs of 12 batches of 16 images", ["--epochs", "6", "--batches", "12", "--low", "320", "--high", "640"], 0.85),
]


class PeakShm(PeakShmem):
    """What /dev/shm takes beyond what it took at the start."""

    SECONDS = 0.002

    @staticmethod
    def read():
        shm = os.statvfs("/dev/shm")
        return (shm.f_blocks - shm.f_bfree) * shm.f_frsize


def run_plainly(load):
    watch = PeakShm()
    watch.start()
    done = subprocess.run(load, stdout=subprocess.PIPE, check=True)
    watch.over.set()
    watch.join()
    return {**json.loads(done.stdout), "peak": watch.peak / MIB}


def run_guarded(program, load):
    with tempfile.NamedTemporaryFile() as report:
        done = subprocess.run([program, "run", "--quiet", "--report", report.name, "--", *load], stdout=subprocess.PIPE, check=True)
        guard = json.loads(pathlib.Path(report.name).read_text())["guard"]
    recycled = guard["segments_reused"] / (guard["segments_reused"] + guard["segments_created"])
    return {**json.loads(done.stdout), "peak": guard["bytes_peak"] / MIB, "recycled": recycled}


def spread(rounds, key, digits=0):
    values = [one[key] for one in rounds]
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def describe(rounds):
    return (f"at most {spread(rounds, 'peak')} MiB, {spread(rounds, 'processor_seconds', 1)} s of processor time, page faults of a "
            f"worker's first batch {spread(rounds, 'first_faults')}, of the trainer {spread(rounds, 'trainer_faults')} per epoch")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    missed = False
    for name, options, target in LOADS:
        load = [args.python, "-W", "ignore", str(LOAD), *options]
        plain, guarded = [], []
        for _ in range(args.rounds):
            plain.append(run_plainly(load))
            guarded.append(run_guarded(args.program, load))
        recycled = statistics.median(one["recycled"] for one in guarded)
        ratio = statistics.median(under["peak"] / without["peak"] for under, without in zip(guarded, plain))
        reached = recycled >= target and ratio <= PEAK_RATIO
        missed = missed or not reached
        print(f"{name}\n  plain  {describe(plain)}\n  guard  {describe(guarded)}\n"
              f"  recycled {recycled:.1%}, target {target:.0%}; peak {ratio:.2f} times plain, target {PEAK_RATIO}: "
              f"{'reached' if reached else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
