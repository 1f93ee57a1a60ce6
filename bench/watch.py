# SPDX-License-Identifier: Apache-2.0
"""What shmguard watch costs: 64 training processes among 500, one look per second.

    python3 bench/watch.py PROGRAM [--training N] [--others N] [--seconds N]

One process loads PyTorch and forks the others, so that they start quickly and share memory like real workers.
Prints the share of a core that watch uses once it runs, its memory, and the time until its first picture. Fails when a
target is missed.
"""

import argparse
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time

from crowd import end_by_signal, end_with_parent

CPU_TARGET = 0.01
FIRST_TARGET_SECONDS = 0.200
TICK = os.sysconf("SC_CLK_TCK")

TRAINER = """
import os, signal, sys, torch
for i in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        memory = bytearray(os.urandom(1 << 16)) * 64  # private, as a worker's
        segment = torch.zeros(1 << 16).share_memory_()
        signal.pause()
segment = torch.zeros(1 << 20).share_memory_()
print("ready", flush=True)
signal.pause()
"""


def go_alone():
    """Moves into a new pid namespace, if that is allowed, so that other processes on this machine do not count."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
    if os.getpid() == 1 or subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return
    # unshare ignores SIGTERM; when it is killed, everything that it has started is killed too.
    alone = subprocess.Popen([*unshare, sys.executable, *sys.argv], preexec_fn=lambda: end_with_parent(signal.SIGKILL))
    try:
        sys.exit(alone.wait())
    finally:
        alone.kill()


def start(training, others):
    # Each in its own process group, so that all of its processes can be ended together.
    jobs = [subprocess.Popen([sys.executable, "-c", TRAINER, str(training)], stdout=subprocess.PIPE, start_new_session=True, preexec_fn=end_with_parent)]
    if jobs[0].stdout.readline() != b"ready\n":
        sys.exit("the training did not start")
    jobs.append(subprocess.Popen(["sh", "-c", f"for i in $(seq {others}); do sleep 3600 & done; wait"], start_new_session=True, preexec_fn=end_with_parent))
    time.sleep(3)
    return jobs


def end(jobs):
    for job in jobs:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


class Screen:
    """The program on its own terminal."""

    def __init__(self, program, rows=50, columns=160):
        self.began = time.perf_counter()
        pid, self.master = pty.fork()
        if pid == 0:
            # Between fork and exec: only what is safe there.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(program, [program, "watch"], {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        self.pid = pid
        self.text = b""

    def read(self, seconds):
        """Reads output for that long."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.text += os.read(self.master, 65536)
                except OSError:  # the program has ended
                    return

    def first_picture(self):
        """Seconds until the last row is there: the keys are drawn after everything above them."""
        while b"Quit" not in self.text:
            self.text += os.read(self.master, 65536)
        return time.perf_counter() - self.began

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

    def close(self):
        os.write(self.master, b"q")
        self.read(10)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        if status != 0:
            sys.exit(f"watch ended with status {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--training", type=int, default=64)
    parser.add_argument("--others", type=int, default=436)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()

    end_by_signal()
    go_alone()
    jobs = start(args.training, args.others)
    try:
        first = []
        for _ in range(args.rounds):
            screen = Screen(args.program)
            first.append(screen.first_picture())
            screen.close()
        screen = Screen(args.program)
        screen.read(8)
        before, began = screen.cpu_seconds(), time.perf_counter()
        screen.read(args.seconds)
        share = (screen.cpu_seconds() - before) / (time.perf_counter() - began)
        memory = screen.memory()
        screen.close()
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
    finally:
        end(jobs)

    missed = []

    def judge(what, reached, target, good):
        print(f"  {what}: {reached}, target {target}: {'reached' if good else 'MISSED'}")
        if not good:
            missed.append(what)

    print(f"watch: {args.training} training processes among {processes}, a look a second")
    judge("a core", f"{share * 100:.2f}%", f"{CPU_TARGET * 100:.0f}%", share < CPU_TARGET)
    middle = statistics.median(first)
    judge("first picture", f"{middle * 1e3:.0f} ms (spread {min(first) * 1e3:.0f} to {max(first) * 1e3:.0f} ms)",
          f"{FIRST_TARGET_SECONDS * 1e3:.0f} ms", middle < FIRST_TARGET_SECONDS)
    print(f"  peak memory: {memory / 2**20:.1f} MiB")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
