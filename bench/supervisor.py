# SPDX-License-Identifier: Apache-2.0
"""What the supervisor costs while a job of 64 processes runs: its CPU time as a share of one core.

    python3 bench/supervisor.py PROGRAM [--seconds N] [--rounds N]

The processes are forked from one that has loaded PyTorch, have threads and descriptors like workers, and are idle: all that remains is the
supervisor's one look per second. Fails at 0.5% or more.
"""

import argparse
import statistics
import subprocess
import sys
import time

from crowd import PROCESSES, cpu_seconds, program

JOB = program()


def measure(args):
    job = subprocess.Popen([args.program, "run", "--quiet", "--", args.python, "-c", JOB])
    try:
        time.sleep(8)  # until all processes are running and known
        before, start = cpu_seconds(job.pid), time.monotonic()
        time.sleep(args.seconds)
        return (cpu_seconds(job.pid) - before) / (time.monotonic() - start) * 100
    finally:
        job.terminate()
        job.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    shares = [measure(args) for _ in range(args.rounds)]
    reached = statistics.median(shares) < 0.5
    print(f"supervisor of {PROCESSES} processes: {statistics.median(shares):.2f}% of one core ({min(shares):.2f} to {max(shares):.2f}), "
          f"target 0.5%: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
