# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed at any time, and others that take over their segments: no two may write to the same one.

    python3 tests/guard/successors.py --seconds 20 [--seed N]

Each process makes tensors of random sizes, fills them with a number of its own, keeps some, and finds them as it left them. Some close
their connection to the supervisor, which then cannot tell that they live. Run it under shmguard run.
"""

import argparse
import os
import random
import signal
import sys
import time

import torch

PROCESSES = 4
KEPT = 12


def close_sockets():
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                os.close(int(number))
        except OSError:
            pass  # the directory's own


def make_and_check(rng):
    kept = []
    number = 0
    loses_connection = rng.random() < 0.3
    while True:
        number += 1
        value = rng.randrange(1 << 62)
        tensor = torch.empty(rng.randrange(1 << 14, 1 << 19), dtype=torch.int64).share_memory_()
        tensor.fill_(value)
        kept.append((value, tensor))
        del tensor
        if len(kept) > KEPT:
            value, tensor = kept.pop(rng.randrange(len(kept)))
            if not bool((tensor == value).all()):
                print(f"process {os.getpid()}, tensor {number}: another process has written to it", file=sys.stderr, flush=True)
                os._exit(1)
            del tensor
        if loses_connection and number % 20 == 0:
            close_sockets()


def start(seed):
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)
        make_and_check(random.Random(seed))
    return pid


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(time.time())
    rng = random.Random(seed)
    torch.set_num_threads(1)
    running = [start(rng.random()) for _ in range(PROCESSES)]
    end = time.monotonic() + args.seconds
    killed = 0
    while time.monotonic() < end:
        time.sleep(rng.uniform(0, 0.3))
        at = rng.randrange(len(running))
        os.kill(running[at], signal.SIGKILL)
        _, status = os.waitpid(running[at], 0)
        assert os.WIFSIGNALED(status), f"seed {seed}: a process ended with status {status}"
        running[at] = start(rng.random())
        killed += 1
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), f"seed {seed}: a process ended with status {status}"
    print(f"successors: {killed} processes killed, seed {seed}: no segment had two producers", flush=True)


if __name__ == "__main__":
    main()
