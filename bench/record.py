"""What a recorder costs that looks at a training of 64 processes once a second: its share of one core and its memory.

    python3 bench/record.py PROGRAM [--seconds N] [--rounds N]

The processes are forked from one that has PyTorch loaded, with threads, descriptors, a segment of shared memory and 64 MiB of their own
each, as workers have them. Prints what a recorder with --pid and one with a command take. Fails at 1% of a core or 16 MiB.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from crowd import PROCESSES, cpu_seconds, program

JOB = program("own = torch.ones(16 << 20)\nshared = torch.ones(1 << 18).share_memory_()")


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def recorder_measure(pid, seconds):
    time.sleep(12)  # until all are there and were met
    before, start = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - start) * 100, rss_bytes(pid)


def attach_measure(args, file):
    job = subprocess.Popen([args.python, "-c", JOB], start_new_session=True)
    try:
        time.sleep(5)
        recorder = subprocess.Popen([args.program, "record", "--quiet", "-o", file, "--pid", str(job.pid)])
        result = recorder_measure(recorder.pid, args.seconds)
        recorder.terminate()
        recorder.wait()
        return result
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def command_measure(args, file):
    recorder = subprocess.Popen([args.program, "record", "--quiet", "-o", file, "--", args.python, "-c", JOB])
    try:
        time.sleep(5)
        return recorder_measure(recorder.pid, args.seconds)
    finally:
        recorder.terminate()
        recorder.wait()


def report(name, results):
    shares = [share for share, _ in results]
    most = max(rss for _, rss in results) / (1 << 20)
    reached = statistics.median(shares) < 1 and most < 16
    print(f"{name} of {PROCESSES} processes: {statistics.median(shares):.2f}% of one core ({min(shares):.2f} to {max(shares):.2f}), "
          f"{most:.1f} MiB, target 1% and 16 MiB: {'reached' if reached else 'MISSED'}")
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        attached = [attach_measure(args, f"{folder}/attached.db") for _ in range(args.rounds)]
        started = [command_measure(args, f"{folder}/started.db") for _ in range(args.rounds)]
    return 0 if all([report("record --pid", attached), report("record -- COMMAND", started)]) else 1


if __name__ == "__main__":
    sys.exit(main())
