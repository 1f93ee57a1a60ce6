# SPDX-License-Identifier: Apache-2.0
"""Memory of a whole job whose dataset is a list of dicts: plain, and with the dataset made immortal, in interleaved rounds.

    python3 bench/freeze.py PROGRAM [--rounds N] [--python PYTHON] [--items N] [--workers N]

Needs PyTorch on CPython 3.12 to 3.14: PYTHON, or that in .venv-freeze, or the system's; without one, it says so and measures nothing. Prints
the median and the spread (min to max) of the private memory of all processes together after two epochs in random order, of their ratio, and
of the time and rate of freezing. Fails when a target is missed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent
JOB = PROJECT / "tests" / "e2e" / "freeze_job.py"
MIB = 1 << 20
RATIO_MOST = 0.7
RATE_LEAST = 10e6  # objects a second


def python_found():
    ask = "import sys, importlib.util; sys.exit(not ((3, 12) <= sys.version_info[:2] <= (3, 14) and importlib.util.find_spec('torch')))"
    for path in PROJECT / ".venv-freeze" / "bin" / "python", pathlib.Path("/usr/bin/python3"):
        if os.access(path, os.X_OK) and subprocess.run([path, "-c", ask], check=False).returncode == 0:
            return path
    return None


def job(options, freeze):
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.json"
        done = subprocess.run([options.program, "run", "--quiet", "--freeze", freeze, "--report", report, "--", options.python, JOB, "dicts",
                               str(options.items), str(options.workers), "2"], stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "PYTHONWARNINGS": "ignore"})
        return json.loads(done.stdout), json.loads(report.read_text())["freeze"]


def spread(values, form):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))} to {form.format(max(values))})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=python_found())
    parser.add_argument("--items", type=int, default=300_000)
    parser.add_argument("--workers", type=int, default=8)
    options = parser.parse_args()
    if not options.python:
        print("freeze: no PyTorch on Python 3.12 to 3.14 here (.venv-freeze): not measured")
        return 0
    plain, frozen, rates, seconds = [], [], [], []
    for _ in range(options.rounds):
        plain.append(job(options, "off")[0]["private"] / MIB)
        done, freeze = job(options, "auto")
        frozen.append(done["private"] / MIB)
        seconds.append(freeze["seconds"])
        rates.append(freeze["objects"] / freeze["seconds"])
    ratios = [b / a for a, b in zip(plain, frozen)]
    print(f"freeze: {options.items} dicts, {freeze['objects']} objects, {options.workers} workers: private memory of the job"
          f" {spread(plain, '{:.0f} MiB')} plain, {spread(frozen, '{:.0f} MiB')} frozen, ratio {spread(ratios, '{:.2f}')};"
          f" freezing took {spread(seconds, '{:.2f} s')}, {spread([rate / 1e6 for rate in rates], '{:.1f}')} million objects a second")
    missed = statistics.median(ratios) > RATIO_MOST or statistics.median(rates) < RATE_LEAST
    if missed:
        print(f"freeze: a target is missed: ratio at most {RATIO_MOST}, {RATE_LEAST / 1e6:.0f} million objects a second", file=sys.stderr)
    return missed


if __name__ == "__main__":
    sys.exit(main())
