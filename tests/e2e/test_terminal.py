# SPDX-License-Identifier: Apache-2.0
"""What people see on a pseudo terminal, narrow and wide, with colours and without."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata

import pytest

from conftest import MIB, PATIENCE, PYTHONS, needs_root
from test_doctor import commands

CODES = re.compile(r"\x1b\[[0-9;]*m")
LOG = b"RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that dataloader's " \
      b"workers are out of shared memory. Please try to raise your shared memory limit.\n"


def on_terminal(machine, columns, *arguments, input=None, **environment):
    """Runs the program on a terminal of that width. Returns (exit code, what the terminal received)."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    base = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "TERM", "LC_ALL")}
    job = machine.popen(machine.program, *arguments, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                        stdout=slave, stderr=slave, env={**base, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment})
    os.close(slave)
    if input is not None:
        job.stdin.write(input)
        job.stdin.close()
    pieces = []
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the last process that had it open is gone
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    return job.wait(), b"".join(pieces).decode().replace("\r\n", "\n")


def width(line):
    """The number of columns that the line takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.fixture
def busy(small_shm):
    """64 MB with a training in it, and files whose names are meant to break a table."""
    names = ["psm_" + "x" * 240, "psm_" + "数据" * 30, "torch_1_" + "é" * 100, "\x1b[2J\x1b[31mred\r\n\tbell\a", "sem.a b",
             b"nccl-\xff\xfe".decode(errors="surrogateescape")]
    for name in names:
        (small_shm.shm / name).write_bytes(bytes(4096))
    with small_shm.training(PYTHONS["system"]):
        yield small_shm


@needs_root
def test_every_line_fits(busy):
    # Commands and log lines are meant to be copied, so they are never wrapped.
    advising = [*busy.doctor()["findings"], busy.json("explain", input=LOG)]
    to_copy = {line.strip() for advice in advising for command in commands(advice) for line in command.splitlines()}
    to_copy.add(LOG.decode().strip())
    runs = {"ps": ["ps"], "all": ["ps", "--all"], "segments": ["ps", "--segments"], "doctor": ["doctor"],
            "clean": ["clean", "--dry-run"], "explain": ["explain", "-"]}
    widest = {}
    for columns in [80, 200]:
        for key, arguments in runs.items():
            code, text = on_terminal(busy, columns, *arguments, input=LOG if key == "explain" else None)
            assert code in (0, 1, 2)
            plain = CODES.sub("", text)
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", plain), "newlines must be the only control characters"
            assert len(plain.splitlines()) > 3
            lines = [line for line in plain.split("\n") if line.strip() not in to_copy]
            too_wide = [line for line in lines if width(line) > columns]
            assert too_wide == [], (key, columns)
            widest[key, columns] = max(map(width, lines))
    for key in ["all", "segments"]:
        assert widest[key, 200] > 80, f"{key} does not use a wide terminal"
    for key in ["doctor", "explain"]:
        assert widest[key, 200] <= 100, "long lines of prose are hard to read"


@needs_root
def test_hostile_names_are_escaped(busy):
    _, text = on_terminal(busy, 200, "ps", "--segments")
    assert "\\x1b[2J\\x1b[31mred\\x0d\\n\\tbell\\x07" in text
    assert "\x1b[2J" not in text and "\x1b[31mred" not in text
    assert "nccl-\\xff\\xfe" in text
    assert "数据" in text


@needs_root
def test_colours_only_on_a_terminal(small_shm):
    (small_shm.shm / "ballast").write_bytes(bytes(60 * MIB))
    for arguments in [["doctor"], ["ps"]]:
        _, text = on_terminal(small_shm, 80, *arguments)
        assert "\x1b[" in text
        plain = CODES.sub("", text)
        assert "\x1b" not in plain, "every escape sequence must be a colour"
        assert text.count("\x1b[0m") * 2 == len(CODES.findall(text)), "every colour must be switched off again"
        for quiet in [{"NO_COLOR": "1"}, {"TERM": "dumb"}]:
            assert "\x1b" not in on_terminal(small_shm, 80, *arguments, **quiet)[1], quiet
        assert "\x1b[" in on_terminal(small_shm, 80, *arguments, NO_COLOR="")[1], "empty means not set"
        assert "\x1b" not in on_terminal(small_shm, 80, *arguments, "--color=never")[1]
        assert "\x1b[" in on_terminal(small_shm, 80, *arguments, "--color=always", NO_COLOR="1")[1], "colour was requested"

        pipe = small_shm.shmguard(*arguments)
        assert b"\x1b" not in pipe.stdout
        assert b"\x1b[" in small_shm.shmguard(*arguments, "--color=always").stdout
        # JSON is for programs, even on a terminal.
        assert "\x1b" not in on_terminal(small_shm, 80, *arguments, "--json", "--color=always")[1]
    # The verdict can be read without colours. Which of the two it is depends on what else runs on this machine.
    assert re.search("verdict: (X critical|! warning)", on_terminal(small_shm, 80, "doctor", "--color=never", LC_ALL="C")[1])
    assert re.search("verdict: (✗ critical|! warning)", on_terminal(small_shm, 80, "doctor", "--color=never")[1])


@needs_root
def test_the_width_of_a_pipe(small_shm):
    (small_shm.shm / ("psm_" + "x" * 200)).write_bytes(bytes(4096))

    def widest(**environment):
        done = small_shm.shmguard("ps", "--segments", env={**os.environ, "LC_ALL": "C.UTF-8", **environment})
        return max(map(width, done.stdout.decode().splitlines()))

    assert 70 < widest() <= 80
    assert 100 < widest(COLUMNS="120") <= 120
    assert widest(COLUMNS="0") <= 80 and widest(COLUMNS="wide") <= 80 and widest(COLUMNS="-5") <= 80


@pytest.mark.timed
def test_a_person_at_a_terminal_is_told_what_is_waited_for(here):
    master, slave = pty.openpty()
    job = here.popen(here.program, "explain", stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(slave)
    assert b"Ctrl-D" in job.stderr.readline()
    os.write(master, b"RuntimeError: received 0 items of ancdata\n\x04")
    out, err = job.communicate(timeout=PATIENCE)
    os.close(master)
    assert job.returncode == 0 and b"fd-exhausted" in out and err == b""
