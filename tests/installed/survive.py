# SPDX-License-Identifier: Apache-2.0
"""A real training that dies of a /dev/shm of 64 MB, and finishes under an installed shmguard: survive.py COMMAND...

Prints one line."""
import os
import subprocess
import sys
import tempfile

TRAIN = [sys.executable, "-W", "ignore", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../demo/train.py"),
         "--steps", "30", "--batch", "128"]


def output(command, **settings):
    """PyTorch sometimes hangs after losing a batch."""
    try:
        return subprocess.run(command, env=dict(os.environ, **settings), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60).stdout.decode()
    except subprocess.TimeoutExpired as error:
        return error.stdout.decode()


def main(command):
    shm = os.statvfs("/dev/shm")
    assert shm.f_blocks * shm.f_frsize == 64 << 20, shm
    with tempfile.TemporaryDirectory() as scratch:  # killed workers leave their sockets behind
        plain = output(TRAIN, TMPDIR=scratch)
    assert "killed by signal: Bus error" in plain and "finished" not in plain, plain
    guarded = output(command + ["run", "--"] + TRAIN)
    assert "finished 30 steps" in guarded and "of shared tensors were kept out of /dev/shm" in guarded, guarded
    print("dies of a Bus error without shmguard, finishes with it")


if __name__ == "__main__":
    main(sys.argv[1:])
