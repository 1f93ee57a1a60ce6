# SPDX-License-Identifier: Apache-2.0
"""What shmguard asks of the kernel, as seen by strace: each process is sampled once, and no command does more than it needs."""

import collections
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, SANITIZED

WORKERS = 6
SECONDS = 6

JOB = f"""
import os, signal, time
workers = []
for _ in range({WORKERS}):
    workers.append(os.fork())
    if workers[-1] == 0:
        signal.pause()
print(*workers, flush=True)
time.sleep({SECONDS})
for pid in workers:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""

# PID/stat does not count: it is also opened to find parents and ended processes.
SAMPLED = re.compile(r'"(?:/?proc/)?(\d+)/(status|smaps_rollup)"')


def strace(tmp_path, calls, *arguments):
    """Lines of strace for shmguard and its children, and what shmguard printed."""
    if not shutil.which("strace"):
        pytest.skip("needs strace: scripts/need test")
    if SANITIZED:
        pytest.skip("LeakSanitizer does not work under strace")
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", trace, PROGRAM, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    if b"ptrace" in done.stderr:
        pytest.skip("strace cannot trace here: " + done.stderr.decode().strip())
    assert done.returncode in (0, 1, 2), done.stderr
    return trace.read_text(errors="replace"), done.stdout.decode()


@pytest.mark.timed
def test_recording_looks_at_each_process_once(tmp_path):
    calls, printed = strace(tmp_path, "openat", "run", "--record", tmp_path / "run.db", "--", "/usr/bin/python3", "-c", JOB)
    workers = set(printed.split())
    assert len(workers) == WORKERS
    opens = collections.Counter((pid, name) for pid, name in SAMPLED.findall(calls) if pid in workers)
    for pid in workers:
        # At the start and at the end, one more look may fall between two that are a second apart.
        assert SECONDS - 1 <= opens[pid, "status"] <= SECONDS + 2, opens
        assert opens[pid, "smaps_rollup"] <= opens[pid, "status"], opens


@pytest.mark.parametrize("arguments", [["ps", "--json"], ["clean", "--dry-run", "--json"],
                                       ["plan", "--json", "--batch-bytes", "1M", "--workers", "2"]])
def test_only_doctor_tries_and_reads_the_log(tmp_path, arguments):
    calls, _ = strace(tmp_path, "clone,clone3,fork,vfork,unshare,setns,openat", *arguments)
    assert "CLONE_NEW" not in calls and "unshare" not in calls and "setns" not in calls
    assert "kmsg" not in calls
    assert "fork" not in calls
    for line in calls.splitlines():
        assert "clone" not in line or "CLONE_THREAD" in line, line


def test_doctor_does(tmp_path):
    """Proves that the test above would notice."""
    calls, _ = strace(tmp_path, "clone,clone3,unshare,openat", "doctor", "--json")
    assert "CLONE_NEWUSER" in calls and "kmsg" in calls
