# SPDX-License-Identifier: Apache-2.0
"""Compares `shmguard tune` with the whole grid, on trainings with three different bottlenecks.

    python3 bench/tune.py PROGRAM [--trial SECONDS] [--only KIND]

For each training, measures every setting of the grid once, and lets `tune` search with a third of as many trials. Then measures the choice of
`tune` and the fastest settings of the grid again, in turns, because the fastest of many noisy figures is also the luckiest. Fails when the
choice is more than 5% slower than the best, or took more trials than a third of the grid. Takes about six minutes and needs a quiet machine:
the decoders use all CPUs.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

LOAD = pathlib.Path(__file__).resolve().parent / "tune-load.py"
GRID = {"batch": [1, 2, 4, 8, 16, 32], "workers": [1, 2, 3, 4]}
KINDS = ["decode", "transport", "trainer"]
AGAIN = 2  # the fastest settings of the grid that are measured again
ROUNDS = 3


class Training:
    def __init__(self, args, kind):
        self.args = args
        self.load = [args.python, "-W", "ignore", str(LOAD), "--kind", kind]

    def measure(self, batch, workers):
        """The rate without the first quarter of the time, as in `tune`."""
        command = [*self.load, "--batch", str(batch), "--workers", str(workers), "--seconds", str(self.args.trial)]
        done = subprocess.run([self.args.program, "run", "--quiet", "--", *command], stdout=subprocess.PIPE,
                              env={"PYTHONUNBUFFERED": "1", "PATH": "/usr/bin:/bin"}, check=True)
        rates = [float(line.split()[1]) for line in done.stdout.decode().splitlines() if line.startswith("rate: ")]
        return statistics.mean(rates[len(rates) // 4:])

    def tune(self):
        vary = [word for name, values in GRID.items() for word in ("--vary", f"{name}={','.join(map(str, values))}")]
        done = subprocess.run([self.args.program, "tune", "--json", "--rate", "rate: ([0-9.]+)", "--trial",
                               str(self.args.trial), *vary, "--", *self.load, "--batch", "{batch}", "--workers",
                               "{workers}"], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--trial", type=float, default=2)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    settings = [(batch, workers) for batch in GRID["batch"] for workers in GRID["workers"]]
    missed = False
    for kind in [args.only] if args.only else KINDS:
        training = Training(args, kind)
        answer = training.tune()
        chosen = tuple(int(answer["best"]["values"][name]) for name in GRID)
        grid = {setting: training.measure(*setting) for setting in settings}
        fastest = sorted(grid, key=grid.get, reverse=True)[:AGAIN]
        again = {setting: [] for setting in {chosen, *fastest}}
        for _ in range(ROUNDS):
            for setting, rates in again.items():
                rates.append(training.measure(*setting))
        medians = {setting: statistics.median(rates) for setting, rates in again.items()}
        best = max(medians, key=medians.get)
        part = medians[chosen] / medians[best]
        trials = len(answer["trials"])
        good = part >= 0.95 and trials * 3 <= len(settings)
        missed |= not good
        print(f"{kind}-bound: {trials} trials of {len(settings)}, which differ by {100 * answer['noise']:.1f}% when repeated\n"
              f"  chosen        batch {chosen[0]}, workers {chosen[1]}: {medians[chosen]:.0f} samples/s\n"
              f"  best of grid  batch {best[0]}, workers {best[1]}: {medians[best]:.0f} samples/s\n"
              f"  slowest       {min(grid.values()):.0f} samples/s\n"
              f"  chosen / best {part:.3f}, target 0.950: {'reached' if good else 'MISSED'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
