"""Real DataLoaders with a sampler of /dev/shm: what the figures of `plan` are held against.

    planned.py < CASES.json: one case after the other, in this process; for each the peak of /dev/shm in bytes, one JSON
    object a line. Run it where nobody else uses /dev/shm.

A case is { "loaders": [ { "samples": [[dtype, [dims…]]…], "batch", "workers", "prefetch", "collate" } ], "held", "strategy",
"mode" }. collate: "default" (PyTorch's own: in shared memory at once), "copy" (ordinary memory: the feeder thread copies
it), "list" (one tensor for each sample). mode: "stalled" (the trainer stops after its first batches until the workers have
filled their queues), "steady" (the trainer takes a few milliseconds a batch), "hungry" (it takes batches as they come).
"""

import collections
import gc
import json
import mmap
import os
import struct
import sys
import time

INTERVAL = 0.0005
STEPS_AFTER_FULL = 12


def used():
    fs = os.statvfs("/dev/shm")
    return (fs.f_blocks - fs.f_bfree) * fs.f_frsize


class Sampler:
    """A process of its own: a thread would wait for the interpreter's lock just when a batch arrives."""

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
        def __init__(self, loader, length):
            self.fresh = loader["collate"] == "list"
            self.length = length
            self.sample = [torch.ones(dims).to(getattr(torch, dtype)) for dtype, dims in loader["samples"]]

        def __len__(self):
            return self.length

        def __getitem__(self, index):
            return [field.clone() for field in self.sample] if self.fresh else list(self.sample)

    def stack(items):
        return [torch.stack(fields) for fields in zip(*items)]

    collates = {"default": None, "copy": stack, "list": list}

    def outstanding(loader):
        return loader["prefetch"] * loader["workers"]

    def make(loader, held):
        batches = outstanding(loader) + held + STEPS_AFTER_FULL
        return torch.utils.data.DataLoader(
            Samples(loader, batches * loader["batch"]), batch_size=loader["batch"], num_workers=loader["workers"],
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
        iterators = [iter(make(loader, held)) for loader in case["loaders"]]
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
            settle(lambda: True, 20)
            return
        while step():
            if case["mode"] == "steady":
                time.sleep(0.004)

    for case in cases:
        torch.multiprocessing.set_sharing_strategy(case["strategy"])
        gc.collect()
        settle(lambda: used() == 0, 3)
        sampler.reset()
        before = used()
        run(case)
        peak = sampler.peak
        gc.collect()
        print(json.dumps({"peak": peak - before, "before": before}), flush=True)
    sampler.end()


if __name__ == "__main__":
    main()
