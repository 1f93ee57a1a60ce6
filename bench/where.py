# SPDX-License-Identifier: Apache-2.0
"""What the search for the line that leaks costs while it looks: the worker's CPU time per batch in the windows of each stage, and between them.

    python3 bench/where.py PROGRAM [--rounds N] [--python PYTHON] [--kinds python,tensors]

One training runs all the time, and is asked again and again (shmguard where), so that the stages and the time without any take turns. The loader
has one worker, which is never idle and is the process that is traced. Fails if stage 3 takes more than 5% of batches of tensors.
"""

import argparse
import bisect
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

NAMES = {1: "census", 2: "Python objects", 3: "native"}
PLAIN_SECONDS = 12


def cost(batches, begin, end):
    """CPU seconds per batch. The first and the last second are left out: what was begun before came in there."""
    low, high = (bisect.bisect(batches, (at,)) for at in (begin + 1, end - 1))
    return (batches[high - 1][1] - batches[low][1]) / (high - 1 - low)


def windows_of(recording):
    with sqlite3.connect(recording) as db:
        began = db.execute("SELECT value FROM meta WHERE key = 'began'").fetchone()[0]
        rows = db.execute("SELECT stage, worker, seconds, duration FROM site_window").fetchall()
    return [(stage, began + seconds - duration, began + seconds) for stage, worker, seconds, duration in rows if worker >= 0]


def measure(args, kind, folder):
    """The usual cost of a batch, its spread between two rounds, and of each stage the ratios of its costs to that between the searches just before
    and after it: on a busy machine the same batch costs ten times as much a minute later."""
    recording = f"{folder}/{kind}.db"
    seconds = args.rounds * (PLAIN_SECONDS + 60)
    with open(f"{folder}/{kind}.txt", "w+", encoding="ascii") as output:
        job = subprocess.Popen([args.program, "run", "--quiet", "--record", recording, "--", args.python,
                                __file__.replace("where.py", "where-load.py"), kind, str(seconds)], stdout=output)
        time.sleep(10)
        plain = []
        for _ in range(args.rounds):
            time.sleep(PLAIN_SECONDS)
            plain.append((time.time() - PLAIN_SECONDS + 1, time.time()))
            subprocess.run([args.program, "where", "--json", str(job.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        time.sleep(PLAIN_SECONDS)
        plain.append((time.time() - PLAIN_SECONDS + 1, time.time()))
        job.terminate()
        job.wait()
        output.seek(0)
        batches = [tuple(map(float, line.split())) for line in output if line.endswith("\n")]
    usual = statistics.median(cost(batches, *span) for span in plain)
    ratios = {stage: [] for stage in NAMES}
    for stage, begin, end in windows_of(recording):
        around = [max((span for span in plain if span[1] <= begin), default=None), min((span for span in plain if span[0] >= end), default=None)]
        costs = [cost(batches, *span) for span in around if span]
        ratios[stage].append(cost(batches, begin, end) * len(costs) / sum(costs))
    return usual, [cost(batches, *span) / usual for span in plain], ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--kinds", default="python,tensors")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds.split(","):
            usual, plain, ratios = measure(args, kind, folder)
            print(f"{kind}: {usual * 1000:.2f} ms of CPU time per batch without a search ({min(plain):.2f} to {max(plain):.2f} times that)")
            for stage, found in ratios.items():
                if not found:
                    print(f"  {NAMES[stage]}: never reached")
                    continue
                median = statistics.median(found)
                print(f"  {NAMES[stage]}: {median:.2f} times that ({min(found):.2f} to {max(found):.2f}, {len(found)} windows)")
                good = good and (stage != 3 or kind != "tensors" or median <= 1.05)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
