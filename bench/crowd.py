# SPDX-License-Identifier: Apache-2.0
"""Many PyTorch processes that do nothing, and what somebody who looks at them takes: for the benchmarks."""

import ctypes
import os
import signal
import sys

PROCESSES = 64
PR_SET_PDEATHSIG = 1


def end_by_signal():
    """What was started is ended as on any other way out, whoever ends the benchmark."""
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, lambda number, _: sys.exit(128 + number))


def end_with_parent(signo=signal.SIGTERM):
    """For what is started: also where nobody can end it any more, since we were killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signo)


def program(memory=""):
    """Of one process that loads PyTorch and forks the others; each of them runs `memory`."""
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
