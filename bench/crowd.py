# SPDX-License-Identifier: Apache-2.0
"""For the benchmarks: many idle PyTorch processes, and the CPU time of the process that watches them."""

import ctypes
import os
import signal
import sys

PROCESSES = 64
PR_SET_PDEATHSIG = 1


def end_by_signal():
    """Makes signals end the benchmark like any other exit, so that it ends what it has started."""
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, lambda number, _: sys.exit(128 + number))


def end_with_parent(signo=signal.SIGTERM):
    """Ends a started process with us, even if we are killed and cannot end it ourselves."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signo)


def program(memory=""):
    """A program that loads PyTorch and forks the other processes; each of them runs `memory`."""
    return f"""
import ctypes, os, threading, time, torch
files = [open(os.devnull) for _ in range(40)]
for _ in range({PROCESSES} - 1):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, 9)
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
