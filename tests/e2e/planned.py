# SPDX-License-Identifier: Apache-2.0
"""Runs real DataLoaders and samples /dev/shm, to check the figures of `plan`.

    planned.py < CASES.json

Runs the cases one after the other in this process. Prints one line of JSON per case, with the peak of /dev/shm in bytes.
Must run where no one else uses /dev/shm.

A case is { "loaders": [ { "samples": [[dtype, [dims...]]...], "batch", "workers", "prefetch", "collate" } ], "held",
"strategy", "mode" }.

collate: "default" (PyTorch's own: directly in shared memory), "copy" (ordinary memory, which the feeder thread copies),
"list" (one tensor per sample).

mode: "stalled" (the trainer pauses after its first batches, as for a checkpoint), "steady" (it is slower than the
workers, whose samples take time as real ones do), "instant" (like steady, but samples take no time: a worker may have
its next batch ready while the last one is still being released).
"""

import collections
import gc
import json
import mmap
import os
import pathlib
import struct
import subprocess
import sys
import time

INTERVAL = 0.0005
STEPS_AFTER_FULL = 12
STEP_SECONDS = 0.03
BYTES_A_SECOND = 100e6  # made by the workers on a busy machine


def used():
    fs = os.statvfs("/dev/shm")
    return (fs.f_blocks - fs.f_bfree) * fs.f_frsize


def loader(samples, batch, workers, prefetch, collate="default"):
    return {"samples": samples, "batch": batch, "workers": workers, "prefetch": prefetch, "collate": collate}


def case(loaders, mode="stalled", strategy="file_descriptor", held=1):
    return {"loaders": loaders, "held": held, "strategy": strategy, "mode": mode}


def sample_words(samples):
    return [f"{dtype}[{','.join(map(str, dims))}]" if dims else dtype for dtype, dims in samples]


def plan_options(case):
    """The case as options of `shmguard plan`."""
    options = ["--held", str(case["held"]), "--strategy", case["strategy"]]
    for one in case["loaders"]:
        words = [f"sample={sample}" for sample in sample_words(one["samples"])]
        words += [f"{name}={one[name]}" for name in ("batch", "workers", "prefetch")]
        words.append("collate=" + ("list" if one["collate"] == "list" else "stack"))
        options += ["--loader", ";".join(words)]
    return options


def predict(program, case):
    done = subprocess.run([program, "plan", "--json", *plan_options(case)], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def error(plan, peak, between):
    """How far the peak is from the prediction. between: samples may be ready during the handover, so any peak from the
    need to its bound is right."""
    if between and plan["base"] <= peak <= plan["bound"]:
        return 0
    return (plan["bound"] if between and peak > plan["bound"] else plan["base"]) / peak - 1


def measure(python, cases):
    """Yields the peak of each case in bytes, as soon as it is known."""
    command = 'mount -t tmpfs -o size=4g tmpfs /dev/shm && exec "$0" -W ignore "$1"'
    job = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", command, python,
                            str(pathlib.Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        job.stdin.write(json.dumps(cases).encode())
        job.stdin.close()
        for _ in cases:
            line = job.stdout.readline()
            assert line, f"the loaders ended with {job.wait()}"
            yield json.loads(line)["peak"]
    finally:
        job.stdout.close()
        job.kill()
        job.wait()


class Sampler:
    """A separate process: a thread would wait for the interpreter's lock just when a batch arrives."""

    def __init__(self):
        self.page = mmap.mmap(-1, mmap.PAGESIZE)
        self.parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            while os.getppid() == self.parent:
                now = used()
                if now > self.peak:
                    self.page[:8] = struct.pack("=Q", now)
                time.sleep(INTERVAL)
            os._exit(0)

    @property
    def peak(self):
        return struct.unpack("=Q", self.page[:8])[0]

    def reset(self):
        self.page[:8] = bytes(8)

    def end(self):
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def main():
    cases = json.load(sys.stdin)
    sampler = Sampler()
    import torch
    import torch.utils.data

    torch.set_num_threads(1)

    class Samples(torch.utils.data.Dataset):
        def __init__(self, loader, length, cost):
            self.fresh = loader["collate"] == "list"
            self.batch = loader["batch"]
            self.length = length
            self.cost = cost
            self.sample = [torch.ones(dims).to(getattr(torch, dtype)) for dtype, dims in loader["samples"]]

        def __len__(self):
            return self.length

        def __getitem__(self, index):
            if index % self.batch == 0:
                time.sleep(self.cost)
            return [field.clone() for field in self.sample] if self.fresh else list(self.sample)

    def stack(items):
        return [torch.stack(fields) for fields in zip(*items)]

    collates = {"default": None, "copy": stack, "list": list}

    def outstanding(loader):
        return loader["prefetch"] * loader["workers"]

    def batch_bytes(loader):
        return loader["batch"] * sum(field.numel() * field.element_size() for field in Samples(loader, 0, 0).sample)

    def step_seconds(case):
        return STEP_SECONDS + sum(map(batch_bytes, case["loaders"])) / BYTES_A_SECOND

    def make(loader, case):
        batches = outstanding(loader) + case["held"] + STEPS_AFTER_FULL
        cost = 0.3 * loader["workers"] * step_seconds(case) if case["mode"] == "steady" else 0
        return torch.utils.data.DataLoader(
            Samples(loader, batches * loader["batch"], cost), batch_size=loader["batch"], num_workers=loader["workers"],
            prefetch_factor=loader["prefetch"], collate_fn=collates[loader["collate"]])

    def settle(condition, seconds):
        deadline = time.monotonic() + seconds
        last, since = used(), time.monotonic()
        while time.monotonic() < deadline:
            time.sleep(0.01)
            now = used()
            if now != last:
                last, since = now, time.monotonic()
            if time.monotonic() - since > 0.25 and condition():
                return

    def run(case):
        held = case["held"]
        iterators = [iter(make(loader, case)) for loader in case["loaders"]]
        kept = [collections.deque(maxlen=held) for _ in iterators]

        def step():
            went = False
            for iterator, batches in zip(iterators, kept):
                batch = next(iterator, None)
                if batch is not None:
                    batches.append(batch)
                    went = True
                del batch
            return went

        if case["mode"] == "stalled":
            for _ in range(held):
                step()
            least = sum((outstanding(loader) + held) * batch_bytes(loader) for loader in case["loaders"])
            settle(lambda: used() >= least, 60)
        peak = sampler.peak
        pause = 0 if case["mode"] == "stalled" else step_seconds(case)
        while step():  # to the end: with file_system, batches that are not fetched stay
            time.sleep(pause)
        return peak if case["mode"] == "stalled" else sampler.peak

    for case in cases:
        torch.multiprocessing.set_sharing_strategy(case["strategy"])
        gc.collect()
        settle(lambda: used() == 0, 3)
        sampler.reset()
        before = used()
        peak = run(case)
        gc.collect()
        print(json.dumps({"peak": peak - before, "before": before}), flush=True)
    sampler.end()


if __name__ == "__main__":
    main()
