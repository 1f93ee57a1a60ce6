# SPDX-License-Identifier: Apache-2.0
"""What the guard adds to munmap of memory that is not a tensor, in a process with no tensors, some, and as many as it can keep.

    python3 bench/munmap.py PROGRAM [--rounds N]

Interleaves a plain process and one with the library next to PROGRAM, and prints the median and the spread (min to max) of one mmap and munmap
on both sides. The last column is the guard's own work: the difference to the same two calls made directly as system calls in the same
process. The rest of the difference is the kernel's, which has a second mapping per tensor to search. Fails when the guard's own work takes
more than OWN_MAX_NS with any number of tensors.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().with_suffix(".c")
TENSORS = (0, 100, 4096)
OWN_MAX_NS = 500


def spread(values):
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def measure(program, tensors, preload):
    environment = {**os.environ, "LD_PRELOAD": preload}
    done = subprocess.run([program, str(tensors)], env=environment, stdout=subprocess.PIPE, check=True)
    return [float(word) for word in done.stdout.split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    library = pathlib.Path(arguments.program).resolve().parent / "libshmguard-preload.so"
    missed = False
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory) / "munmap"
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", program, SOURCE], check=True)
        print(f"{'tensors':>8} {'plain, ns':>24} {'guarded, ns':>24} {'the guard itself, ns':>24}")
        for tensors in TENSORS:
            plain, guarded, own = [], [], []
            for _ in range(arguments.rounds):
                plain.append(measure(program, tensors, "")[0])
                by_libc, by_kernel = measure(program, tensors, str(library))
                guarded.append(by_libc)
                own.append(by_libc - by_kernel)
            missed |= statistics.median(own) > OWN_MAX_NS
            print(f"{tensors:>8} {spread(plain):>24} {spread(guarded):>24} {spread(own):>24}", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
