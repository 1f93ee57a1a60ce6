# SPDX-License-Identifier: Apache-2.0
"""What the supervisor's journal costs with 64 processes: less than reading a small file of /proc a thousand times,
about 16 reads per process."""

import json
import subprocess

import pytest

from conftest import BUILD, SANITIZED

PROCESSES = 64
SECONDS = 4
TRIES = 5

COST = BUILD / "tests" / "run" / "journal-cost"

# Like a trainer and its workers: PyTorch is loaded, and each process has several threads and some dozens of
# descriptors.
JOB = f"""
import os, signal, threading, time
import torch

def idle():
    for _ in range(4):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    descriptors = [os.open("/dev/null", os.O_RDONLY) for _ in range(50)]
    signal.pause()

children = []
for _ in range({PROCESSES} - 1):
    children.append(os.fork())
    if children[-1] == 0:
        idle()

def end(*_):
    for child in children:
        os.kill(child, signal.SIGKILL)
    os._exit(0)

signal.signal(signal.SIGTERM, end)
idle()
"""


@pytest.mark.skipif(SANITIZED, reason="timing is meaningless under a sanitizer")
@pytest.mark.timed
def test_a_look_a_second_is_cheap(one_python):
    if not COST.exists():
        pytest.skip(f"{COST} is not built: meson configure -Dtests=enabled")
    for _ in range(TRIES):
        done = subprocess.run([COST, str(SECONDS), one_python, "-c", JOB], stdout=subprocess.PIPE, timeout=120, check=True)
        cost = json.loads(done.stdout)
        print(cost)
        assert cost["processes"] == PROCESSES
        if cost["mean_ms"] < cost["reads_ms"]:
            return
    pytest.fail(f"a look took {cost['mean_ms']} ms on average, and a thousand reads {cost['reads_ms']} ms, in the last of {TRIES} tries")
