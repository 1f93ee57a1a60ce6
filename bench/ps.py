# SPDX-License-Identifier: Apache-2.0
"""Compares shmguard ps with psutil's memory_maps and with smem on the same 150 real PyTorch processes, in interleaved rounds.

    python3 bench/ps.py PROGRAM [--rounds N] [--trainers N] [--workers N]

Prints the median and the spread (min to max) of each side, and the ratios. Only the ratios matter: absolute times depend on
the machine. Fails when a target is missed.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import time

import psutil

TRAIN = pathlib.Path(__file__).resolve().parent.parent / "demo" / "train.py"
RATIO_TARGET = 20
DOCTOR_TARGET_SECONDS = 0.100
MEMORY_TARGET_BYTES = 8 << 20


def start_jobs(trainers, workers):
    jobs = []
    for _ in range(trainers):
        jobs.append(subprocess.Popen(
            [sys.executable, TRAIN, "--hold", "3600", "--batch", "8", "--side", "128", "--steps", "1000",
             "--workers", str(workers)], stdout=subprocess.PIPE))
    for job in jobs:
        if job.stdout.readline() != b"holding\n":
            sys.exit("a training did not start")
    time.sleep(1)
    pids = [job.pid for job in jobs]
    pids += [child.pid for job in jobs for child in psutil.Process(job.pid).children(recursive=True)]
    return jobs, pids


def end_jobs(jobs):
    for job in jobs:
        for child in psutil.Process(job.pid).children(recursive=True):
            child.kill()
        job.kill()
        job.wait()


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def run_quietly(*command):
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)


def read_with_psutil(pids):
    for pid in pids:
        psutil.Process(pid).memory_maps()


def peak_memory(*command):
    """Measured by GNU time. Python's own wait4 would not do: a child's peak starts with that of the process that forked it."""
    done = subprocess.run(["/usr/bin/time", "-f", "%M", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          check=False)
    return int(done.stderr.split()[-1]) * 1024


def line(name, seconds):
    print(f"  {name:34} median {statistics.median(seconds) * 1e3:8.1f} ms   "
          f"spread {min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--trainers", type=int, default=10)
    parser.add_argument("--workers", type=int, default=14)
    args = parser.parse_args()

    missed = []

    def judge(what, reached, target, better):
        print(f"  {what}: {reached}, target {target}: {'reached' if better else 'MISSED'}")
        if not better:
            missed.append(what)

    idle = [timed(lambda: run_quietly(args.program, "doctor", "--json")) for _ in range(args.rounds)]
    jobs, pids = start_jobs(args.trainers, args.workers)
    try:
        sides = {"shmguard ps --json": [], "psutil memory_maps": [], "smem": []}
        for _ in range(args.rounds):
            sides["shmguard ps --json"].append(timed(lambda: run_quietly(args.program, "ps", "--json")))
            sides["psutil memory_maps"].append(timed(lambda: read_with_psutil(pids)))
            sides["smem"].append(timed(lambda: run_quietly("smem", "-H")))
        memory = max(peak_memory(args.program, *command) for command in (["ps", "--json"], ["ps"], ["doctor"]))
        busy = [timed(lambda: run_quietly(args.program, "doctor", "--json")) for _ in range(args.rounds)]
    finally:
        end_jobs(jobs)

    print(f"{len(pids)} PyTorch processes, {args.rounds} interleaved rounds")
    for name, seconds in sides.items():
        line(name, seconds)
    line("shmguard doctor, idle machine", idle)
    line("shmguard doctor, these processes", busy)
    ours = sides["shmguard ps --json"]
    for name in ("psutil memory_maps", "smem"):
        ratios = [other / own for other, own in zip(sides[name], ours)]
        ratio = statistics.median(ratios)
        judge(f"ps is faster than {name}", f"{ratio:.1f} times ({min(ratios):.1f} to {max(ratios):.1f})",
              f"{RATIO_TARGET} times", ratio >= RATIO_TARGET)
    judge("doctor on an idle machine", f"{statistics.median(idle) * 1e3:.1f} ms", f"{DOCTOR_TARGET_SECONDS * 1e3:.0f} ms",
          statistics.median(idle) < DOCTOR_TARGET_SECONDS)
    judge("peak memory of the program", f"{memory / 2**20:.1f} MiB", f"{MEMORY_TARGET_BYTES >> 20} MiB",
          memory < MEMORY_TARGET_BYTES)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
