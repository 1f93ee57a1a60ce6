# SPDX-License-Identifier: Apache-2.0
"""A loader whose batches do not fit: unlimited, and with a budget of half of what it would use, in interleaved rounds.

    python3 bench/budget.py PROGRAM [--rounds N]

The trainer is the bottleneck, as it should be: one step takes longer than all workers together need for a batch. Prints the median and the
spread (min to max) of the rates and of their ratio, and by how much the shared memory in use exceeded the budget. Fails when the ratio is
below 0.7, or when the budget was exceeded by more than one batch per worker.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

CRASH = pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e" / "crash.py"
MIB = 1 << 20
BATCH = 16 * MIB
WORKERS = 4
IN_FLIGHT = 2 * WORKERS + 1
BUDGET = IN_FLIGHT * BATCH // 2
BATCHES = 120


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def measure(args, options):
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.json"
        command = [args.program, "run", "--quiet", "--report", report, *options, "--", args.python, "-W", "ignore", CRASH, "none",
                   "--bytes", BATCH, "--batches", BATCHES, "--workers", WORKERS, "--step", args.step]
        start = time.perf_counter()
        subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True)
        return BATCHES / (time.perf_counter() - start), json.loads(report.read_text())["guard"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--step", type=float, default=0.1, help="seconds that the trainer takes for a step")
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    free, limited, ratios, beyond, waits = [], [], [], [], []
    for _ in range(args.rounds):
        rate_free, _ = measure(args, ["--budget", "off"])
        rate, guard = measure(args, ["--budget", str(BUDGET)])
        free.append(rate_free)
        limited.append(rate)
        ratios.append(rate / rate_free)
        beyond.append((guard["bytes_peak"] - BUDGET) / BATCH)
        waits.append(guard["waits"])
    reached = statistics.median(ratios) >= 0.7 and max(beyond) <= WORKERS
    print(f"{BATCH // MIB} MiB batches, {WORKERS} workers, {args.step} s a step, budget {BUDGET // MIB} MiB\n"
          f"  unlimited  {spread(free)} batches/s\n"
          f"  budget     {spread(limited)} batches/s, {spread(waits)} waits, beyond the budget by {spread(beyond)} batches\n"
          f"  ratio      {spread(ratios)}, target 0.7: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
