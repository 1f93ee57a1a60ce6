# SPDX-License-Identifier: Apache-2.0
"""What a recorder costs that samples a training of 64 processes once a second: its share of one core and its memory.

    python3 bench/record.py PROGRAM [--seconds N] [--rounds N]

The processes are forked from one that has loaded PyTorch. Like workers, each has threads, descriptors, a segment of shared memory and 64 MiB of
its own. Prints what a recorder costs with --pid and with a command, and what run's supervisor costs with and without --record. Fails at 1% of a
core or 16 MiB for a recorder, or for what --record adds.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from crowd import PROCESSES, cpu_seconds, end_by_signal, end_with_parent, program

JOB = program("own = torch.ones(16 << 20)\nshared = torch.ones(1 << 18).share_memory_()")


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def process_measure(process, seconds):
    time.sleep(17)  # until all processes are running and known
    before, start = cpu_seconds(process.pid), time.monotonic()
    time.sleep(seconds)
    if process.poll() is not None:
        sys.exit("the job has ended before it was measured; PYTHON needs PyTorch")
    return (cpu_seconds(process.pid) - before) / (time.monotonic() - start) * 100, rss_bytes(process.pid)


def started_measure(args, *words):
    process = subprocess.Popen([args.program, *words], preexec_fn=end_with_parent)
    try:
        return process_measure(process, args.seconds)
    finally:
        process.terminate()
        process.wait()


def attach_measure(args, file):
    job = subprocess.Popen([args.python, "-c", JOB], start_new_session=True, preexec_fn=end_with_parent)
    try:
        time.sleep(5)
        return started_measure(args, "record", "--quiet", "-o", file, "--pid", str(job.pid))
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def report(name, results):
    shares = [share for share, _ in results]
    most = max(rss for _, rss in results) / (1 << 20)
    reached = statistics.median(shares) < 1 and most < 16
    print(f"{name} of {PROCESSES} processes: {statistics.median(shares):.2f}% of one core ({min(shares):.2f} to {max(shares):.2f}), "
          f"{most:.1f} MiB, target 1% and 16 MiB: {'reached' if reached else 'MISSED'}")
    return reached


def report_added(without, recording):
    """For a supervisor, what recording adds counts."""
    shares = [more - less for (less, _), (more, _) in zip(without, recording)]
    added = statistics.median(shares)
    memory = [max(rss for _, rss in results) / (1 << 20) for results in (without, recording)]
    reached = added < 1 and memory[1] - memory[0] < 16
    print(f"run of {PROCESSES} processes: {statistics.median(share for share, _ in without):.2f}% of one core, {memory[0]:.1f} MiB; --record adds "
          f"{added:.2f}% ({min(shares):.2f} to {max(shares):.2f}), {memory[1] - memory[0]:.1f} MiB, target 1% and 16 MiB: {'reached' if reached else 'MISSED'}")
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    end_by_signal()
    job = ["--", args.python, "-c", JOB]
    with tempfile.TemporaryDirectory() as folder:
        attached, started, run, recorded = [], [], [], []
        for _ in range(args.rounds):
            attached.append(attach_measure(args, f"{folder}/attached.db"))
            started.append(started_measure(args, "record", "--quiet", "-o", f"{folder}/started.db", *job))
            run.append(started_measure(args, "run", "--quiet", *job))
            recorded.append(started_measure(args, "run", "--quiet", "--record", f"{folder}/run.db", *job))
    return 0 if all([report("record --pid", attached), report("record -- COMMAND", started), report_added(run, recorded)]) else 1


if __name__ == "__main__":
    sys.exit(main())
