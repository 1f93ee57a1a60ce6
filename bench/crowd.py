"""Many PyTorch processes that do nothing, and what somebody who looks at them takes: for the benchmarks."""

import os

PROCESSES = 64


def program(memory=""):
    """Of one process that loads PyTorch and forks the others; each of them runs `memory`."""
    return f"""
import os, threading, time, torch
files = [open(os.devnull) for _ in range(40)]
for _ in range({PROCESSES} - 1):
    if os.fork() == 0:
        break
{memory}
threads = [threading.Thread(target=time.sleep, args=(600,), daemon=True) for _ in range(4)]
[thread.start() for thread in threads]
time.sleep(600)
"""


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
