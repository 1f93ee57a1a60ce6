# SPDX-License-Identifier: Apache-2.0
"""Uses an installed shmguard as people do: use.py COMMAND...

Runs on any Python 3 without packages, in systems that have nothing else. Prints one line."""
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def call(command, arguments, codes=(0,)):
    done = subprocess.run(command + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode in codes, (arguments, done)
    return done.stdout


def screen(command):
    """What watch draws on a terminal that only the program itself knows."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", TERMINFO="/nonexistent", TERMINFO_DIRS="/nonexistent", LINES="24", COLUMNS="80")
        os.execvp(command[0], command + ["watch"])
    seen, asked, end = b"", False, time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if select.select([fd], [], [], 0.2)[0]:
                seen += os.read(fd, 65536)
        except OSError:  # the other side is closed
            break
        if not asked and b"/dev/shm" in seen:
            os.write(fd, b"q")
            asked = True
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    assert status == 0 and b"\x1b[?1049h" in seen, (status, seen)


def look(command):
    doctor = json.loads(call(command, ["doctor", "--json"], (0, 1, 2)))
    assert doctor["environment"]["guard_ready"], doctor
    assert json.loads(call(command, ["ps", "--json"]))["schema"] == "shmguard.ps/1"
    call(command, ["plan", "--sample", "float32[3,224,224]", "--batch", "32", "--workers", "4"], (0, 1))
    screen(command)


def train(command):
    with tempfile.TemporaryDirectory() as scratch:
        recording, report, page = (os.path.join(scratch, name) for name in ("run.db", "run.json", "page.html"))
        call(command, ["run", "--record", recording, "--report", report, "--", sys.executable, os.path.join(HERE, "job.py")])
        with open(report) as file:
            guard = json.load(file)["guard"]
        assert guard["segments_created"] > 0, guard
        call(command, ["report", recording])
        call(command, ["report", recording, "-o", page])
        assert os.path.getsize(page) > 50000


PACKAGE = """
import shmguard
assert shmguard.doctor()["environment"]["guard_ready"]
assert shmguard.plan([1, 2.0], 8, 2)["loaders"][0]["segments"] == 2
assert list(shmguard.SharedList("abc")[1:]) == ["b", "c"] and shmguard.SharedDict({"a": 1})["a"] == 1
"""


def main(command):
    look(command)
    train(command)
    if command[1:] == ["-m", "shmguard"]:
        call(command[:1], ["-W", "error", "-c", PACKAGE])
    print("{} works with {} and Python {}".format(call(command, ["--version"]).strip(), os.confstr("CS_GNU_LIBC_VERSION"), sys.version.split()[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
