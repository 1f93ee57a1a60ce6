# SPDX-License-Identifier: Apache-2.0
"""What happened: logs of real failures, made on the spot, and other input that people pipe in."""

import os
import subprocess

import pytest

from conftest import MIB, SANITIZED, TRAIN, needs_root
from test_bad_input import refused


shares_logs = pytest.mark.xdist_group("bus-error-log")


@pytest.fixture(scope="session")
def bus_error_log():
    """Makes a training die in 64 MB, once for each PyTorch, and gives its log."""
    logs = {}

    def log_of(machine, python):
        if python not in logs:
            died = machine.run_plainly(python, TRAIN, "--steps=20", "--batch=128", "--side=256", stderr=subprocess.STDOUT)
            assert died.returncode != 0, died
            logs[python] = died.stdout
        return logs[python]

    return log_of


@needs_root
@shares_logs
def test_a_real_death_in_64_mb(small_shm, python, bus_error_log, tmp_path):
    log = bus_error_log(small_shm, python)
    (tmp_path / "train.log").write_bytes(log)
    by_file = small_shm.json("explain", tmp_path / "train.log", codes=(0,))
    assert by_file["cause"]["id"] == "shm-exhausted"
    assert by_file["cause"]["confidence"] >= 0.8
    assert by_file["matched"]
    # What it shows are lines of the log, escaped.
    lines = log.replace(b"\0", b"\\x00").decode()
    assert all(line[:60] in lines for line in by_file["matched"])
    assert any("mount -o remount" in (fix["command"] or "") for fix in by_file["fixes"])
    assert any(fix["needs"] == "nothing" for fix in by_file["fixes"])

    assert small_shm.json("explain", codes=(0,), input=log) == by_file
    assert small_shm.json("explain", "-", codes=(0,), input=log) == by_file
    # By a pipe that gives a few bytes at a time.
    slow = small_shm.within("sh", "-c", f"dd bs=7 status=none if={tmp_path}/train.log | \"$@\"", "sh")
    assert slow.json("explain", codes=(0,)) == by_file

    text = small_shm.shmguard("explain", tmp_path / "train.log")
    assert text.returncode == 0 and b"shm-exhausted" in text.stdout and text.stderr == b""
    assert by_file["matched"][0][:40].encode() in text.stdout


@needs_root
@shares_logs
def test_fixes_are_for_this_user(small_shm, ordinary, bus_error_log):
    log = bus_error_log(small_shm, "/usr/bin/python3")
    fixes = ordinary(small_shm).json("explain", codes=(0,), input=log)["fixes"]
    assert fixes[0]["needs"] == "nothing"
    assert all("sudo " in fix["command"] for fix in fixes if "mount " in (fix["command"] or ""))


@needs_root
@shares_logs
def test_junk_around_it_does_no_harm(small_shm, bus_error_log):
    log = bus_error_log(small_shm, "/usr/bin/python3")
    junk = os.urandom(3 * MIB)
    plain = small_shm.json("explain", codes=(0,), input=log)
    buried = small_shm.json("explain", codes=(0,), input=junk + b"\n" + log + b"\n" + junk)
    assert buried["cause"]["id"] == "shm-exhausted" and buried["cause"]["pid"] == plain["cause"]["pid"]
    for line in buried["matched"]:
        assert all(ord(character) >= 0x20 for character in line)


def test_a_killed_worker_is_not_shared_memory(here):
    """Signals are told apart: SIGKILL is not a bus error, whatever its sender."""
    log = b"RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. \n"
    answer = here.json("explain", codes=(0,), input=log)
    assert answer["cause"]["id"] == "killed" and answer["cause"]["pid"] == 4711


def test_an_error_of_the_script_is_its_own(here, tmp_path):
    script = tmp_path / "boom.py"
    script.write_text("def load(index):\n    return [1, 2][index]\nload(7)\n")
    died = subprocess.run(["/usr/bin/python3", script], stderr=subprocess.PIPE, check=False)
    answer = here.json("explain", codes=(0,), input=died.stderr)
    assert answer["cause"]["id"] == "python-error"
    assert any("IndexError: list index out of range" in line for line in answer["matched"])


def test_nothing_to_go_by(here):
    for text in [b"", b"\n\n", b"epoch 1: loss 0.25\nepoch 2: loss 0.125\n"]:
        answer = here.json("explain", codes=(0,), input=text)
        assert answer["cause"]["id"] == "unknown" and answer["matched"] == [], text
    assert here.json("explain", "/dev/null", codes=(0,))["cause"]["id"] == "unknown"
    text = here.shmguard("explain", "/dev/null")
    assert text.returncode == 0 and b"unknown" in text.stdout


def test_five_megabytes_of_noise(here):
    noise = os.urandom(5 * MIB)
    answer = here.json("explain", codes=(0,), input=noise)
    assert answer["cause"]["id"] == "unknown"
    one_line = here.json("explain", codes=(0,), input=b"x" * (5 * MIB))
    assert one_line["cause"]["id"] == "unknown"


def test_a_log_of_any_size_takes_little_memory(here, tmp_path):
    """64 MiB of lines that tell nothing and one that does, in an address space of 48 MiB."""
    line = b"step 123456: loss 0.123456, 12.3 samples/s\n"
    log = tmp_path / "long.log"
    with open(log, "wb") as out:
        for _ in range(16):
            out.write(line * (4 * MIB // len(line)))
        out.write(b"RuntimeError: received 0 items of ancdata\n")
    # AddressSanitizer's shadow alone takes terabytes of address space.
    small = here if SANITIZED else here.within("prlimit", f"--as={48 * MIB}")
    assert small.json("explain", log, codes=(0,))["cause"]["id"] == "fd-exhausted"


def test_files_that_cannot_be_read(here, tmp_path):
    refused(here.shmguard("explain", tmp_path), 65, str(tmp_path), "directory")
    refused(here.shmguard("explain", tmp_path / "missing.log"), 65, "missing.log", "No such file")
    refused(here.shmguard("explain", ""), 65, "No such file")
    refused(here.shmguard("explain", tmp_path / "a\nb"), 65, "a\\nb")
    refused(here.within("sh", "-c", '"$@" <&-', "sh").shmguard("explain"), 65, "standard input")
    with open(tmp_path / "write-only", "wb") as out:
        refused(here.shmguard("explain", stdin=out), 65, "standard input")
    directory = os.open(tmp_path, os.O_RDONLY)
    refused(here.shmguard("explain", stdin=directory), 65, "standard input", "directory")
    os.close(directory)


@needs_root
def test_a_file_of_somebody_else(here, ordinary, public):
    secret = public / "secret.log"
    secret.write_text("RuntimeError: received 0 items of ancdata\n")
    secret.chmod(0o600)
    refused(ordinary(here).shmguard("explain", secret), 77, "secret.log", "Permission denied")
    secret.chmod(0o644)
    assert ordinary(here).json("explain", secret, codes=(0,))["cause"]["id"] == "fd-exhausted"
