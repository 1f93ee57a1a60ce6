# SPDX-License-Identifier: Apache-2.0
"""How accurate `shmguard plan` is: real DataLoaders over a grid of settings, each in a private /dev/shm.

    python3 bench/plan.py PROGRAM [--python PYTHON]... [--only MODE] [--verbose]

For each Python (PyTorch 1.13 and 2.13, if installed) and each mode of the trainer, prints the median and the worst error of the prediction,
compared with the measured peak. Fails when over the whole grid the worst error is above 10% or the median above 3%. In the mode "instant"
samples take no time at all, so one more batch may exist briefly: `plan` then gives two figures, the need and its bound, and the error is how
far the peak lies outside of them. Needs root for the private /dev/shm.
"""

import argparse
import os
import pathlib
import statistics
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "tests" / "e2e"))

from planned import case, error as error_of, loader, measure, predict  # noqa: E402

PYTHONS = ["/usr/bin/python3", str(PROJECT / ".venv-torch-2.13" / "bin" / "python")]
WORST = 0.10
MEDIAN = 0.03

SMALL = ([["uint8", [3, 16, 16]], ["int64", []]], 4)
MIDDLE = ([["float32", [3, 64, 64]], ["int64", []]], 16)
LARGE = ([["float32", [3, 224, 224]], ["int64", []]], 16)
TEXT = ([["int64", [513]], ["bool", [513]], ["float16", [77]]], 33)


def grid():
    for mode in MODES:
        for strategy in ("file_descriptor", "file_system"):
            for samples, batch in (SMALL, MIDDLE, LARGE, TEXT):
                for workers, prefetch in ((1, 2), (2, 2), (3, 1), (2, 4)):
                    yield case([loader(samples, batch, workers, prefetch)], mode, strategy)
                for collate in ("copy", "list"):
                    yield case([loader(samples, batch, 2, 2, collate)], mode, strategy)
        yield case([loader(*MIDDLE, 2, 2), loader(*LARGE, 1, 2)], mode)
        yield case([loader(*MIDDLE, 2, 2)], mode, held=4)


MODES = ("stalled", "steady", "instant")


def words(one):
    parts = [f"{x['collate']} {x['samples'][0][0]}{x['samples'][0][1]} x{x['batch']} w{x['workers']} p{x['prefetch']}" for x in one["loaders"]]
    return f"{one['mode']} {one['strategy']} held {one['held']} {' + '.join(parts)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--python", action="append")
    parser.add_argument("--only", choices=MODES)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    pythons = args.python or [path for path in PYTHONS if os.access(path, os.X_OK)]
    cases = [one for one in grid() if args.only in (None, one["mode"])]
    counted = []
    for python in pythons:
        by_mode = {}
        for one, peak in zip(cases, measure(python, cases)):
            plan = predict(args.program, one)
            error = error_of(plan, peak, one["mode"] == "instant")
            by_mode.setdefault(one["mode"], []).append(error)
            if args.verbose:
                print(f"{100 * error:+6.1f}%  need {100 * (plan['base'] / peak - 1):+6.1f}%  {peak:10d}  {words(one)}", flush=True)
            if peak > plan["with_margin"]:
                print(f"more than with the margin: {words(one)}")
                counted.append(1)
        for mode, errors in by_mode.items():
            sizes = [abs(error) for error in errors]
            print(f"{python}: {mode}: {len(sizes)} cases, median error {100 * statistics.median(sizes):.1f}%, "
                  f"worst {100 * max(sizes):.1f}%", flush=True)
            counted += sizes
    median, worst = statistics.median(counted), max(counted)
    print(f"plan: {len(counted)} cases, median error {100 * median:.1f}%, worst {100 * worst:.1f}%")
    return 0 if median <= MEDIAN and worst <= WORST else 1


if __name__ == "__main__":
    sys.exit(main())
