# SPDX-License-Identifier: Apache-2.0
"""A trainer whose signal handler raises, again and again, while shmguard where looks into it: where_signals.py SECONDS

Each exception must reach the program: it prints how many handlers have raised, and how many exceptions it has caught.
"""

import multiprocessing
import signal
import sys
import time
import types


class Tick(Exception):
    pass


raised = []


def tick(number, frame):
    count = len(raised)
    raised.append(count)
    signal.setitimer(signal.ITIMER_REAL, 0)  # the next one not before this one was caught
    raise Tick(count)


def main(seconds):
    for name, members in (("torch.multiprocessing.reductions", {}), ("torch.utils.data.dataloader", {"DataLoader": type("DataLoader", (), {})}),
                          ("torch.nn.modules.module", {"Module": type("Module", (), {})}),
                          ("torch.utils.data._utils.worker", {"_worker_loop": lambda: None})):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    queue = multiprocessing.Queue()  # its thread
    queue.put(1)
    caught = []
    signal.signal(signal.SIGALRM, tick)
    until = time.monotonic() + seconds
    kept = []
    while time.monotonic() < until:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002)
            end = time.monotonic() + 0.1  # an exception that never comes is one that was lost
            while time.monotonic() < end:
                kept.append(bytes(300))
                for _ in range(300):
                    pass
        except Tick as error:
            caught.append(error.args[0])
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0.1)
    except Tick as error:
        caught.append(error.args[0])
    print(len(raised), len(caught), len(raised) == len(set(caught)))


if __name__ == "__main__":
    main(float(sys.argv[1]))
