# SPDX-License-Identifier: Apache-2.0
"""`run --shm`: a private /dev/shm for the job, for root and for ordinary users, with real trainings in it, and a clear
message where it is refused. `run --check`: what threatens the job.
"""

import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import PATIENCE, PYTHONS, cells, children, holder, needs_root, prepared_namespace, python_of

pytestmark = needs_root

USUAL = ("--steps", "6", "--workers", "2", "--batch", "43", "--side", "512")  # batches of 32 MiB
LIMIT = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\""


def size_seen(done):
    """The size in MiB, from the output of df."""
    return int(re.search(rb"(\d+) +/dev/shm", done.stdout).group(1))


SIZE = ("df", "-m", "--output=size,target", "/dev/shm")


def reachable(somebody, python):
    """Skips if the user cannot run this Python. Uses a shell, because setpriv would still search for it with root's rights."""
    if somebody.run("sh", "-c", '"$0" -c ""', python).returncode != 0:
        pytest.skip(f"an ordinary user cannot reach {python}")
    return python


@pytest.fixture(params=["root", "user"])
def somebody(request, small_shm, ordinary):
    return small_shm if request.param == "root" else ordinary(small_shm)


def test_size(somebody, small_shm):
    done = somebody.shmguard("run", "-q", "--shm", "300M", "--", *SIZE)
    assert (done.returncode, size_seen(done), done.stderr) == (0, 300, b"")
    assert size_seen(small_shm.run(*SIZE)) == 64


def test_auto_where_needed(somebody):
    done = somebody.shmguard("run", "-q", "--shm", "auto", "--", *SIZE)
    assert done.returncode == 0
    assert size_seen(done) > 64


def test_auto_not_needed(private_shm):
    done = private_shm.shmguard("run", "-q", "--shm", "auto", "--", *SIZE)
    assert (size_seen(done), done.stderr) == (2048, b"")


def test_auto_hides_no_data(small_shm):
    (small_shm.shm / "imagenet.tar").write_bytes(b"x")
    done = small_shm.shmguard("run", "-q", "--shm", "auto", "--", "cat", "/dev/shm/imagenet.tar")
    assert (done.returncode, done.stdout) == (0, b"x")
    assert b"imagenet.tar" in done.stderr


@cells("version, strategy, guard",
       [("system", "file_descriptor", "no-guard"), ("system", "file_system", "guard"), ("2.13", "file_system", "no-guard")],
       PYTHONS, ("file_descriptor", "file_system"), ("guard", "no-guard"))
def test_training(somebody, small_shm, public, version, strategy, guard):
    """A training that dies of a bus error in 64 MiB without the guard."""
    python = python_of(version)
    options = ["--no-guard"] if guard == "no-guard" else []
    done = somebody.shmguard("run", *options, "--shm", "1g", "--", reachable(somebody, python), public / "train.py",
                             *USUAL, "--strategy", strategy)
    assert done.returncode == 0, done.stderr.decode()
    assert os.listdir(small_shm.shm) == []
    assert small_shm.shm_used == 0


def test_apart_and_gone(somebody, small_shm):
    """What is inside can be seen from outside only through the job's root directory, and nothing is left afterwards."""
    command = "echo x >/dev/shm/inside; echo ready; read line; exit 7"
    job = somebody.popen(somebody.program, "run", "-q", "--shm", "100M", "--", "sh", "-c", command, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        shell = children(job.pid)[-1]
        assert pathlib.Path(f"/proc/{shell}/root/dev/shm/inside").read_text() == "x\n"
        assert os.listdir(small_shm.shm) == []
        shared = [line for line in pathlib.Path(f"/proc/{shell}/mountinfo").read_text().splitlines()
                  if " shared:" in line]
        assert shared == []
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(PATIENCE) == 7
    finally:
        job.kill()
        job.wait()
        job.stdout.close()
    assert os.listdir(small_shm.shm) == []


def test_signal_reaches_the_job(somebody):
    job = somebody.popen(somebody.program, "run", "-q", "--shm", "100M", "--", "sh", "-c", "echo ready; exec sleep 3600",
                         stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        os.kill(job.pid, signal.SIGTERM)
        assert job.wait(PATIENCE) == 128 + signal.SIGTERM
    finally:
        job.kill()
        job.wait()
        job.stdout.close()


def test_names_of_outside_do_not_count(small_shm, python):
    """A name that is taken in the machine's /dev/shm is free in the job's."""
    program = "from multiprocessing import shared_memory as s; m = s.SharedMemory('psm_01234567', %s, 4096); %s"
    with holder(small_shm, program % ("True", "")):
        done = small_shm.shmguard("run", "-q", "--shm", "100M", "--", python, "-c",
                                  program % ("True", "m.unlink(); print('made')"))
        assert (done.returncode, done.stdout) == (0, b"made\n"), done.stderr.decode()


@pytest.mark.parametrize(("wish", "code"), [("100M", 69), ("auto", 0)])
def test_refused(small_shm, ordinary, wish, code, public):
    """In a user namespace that allows no further ones, so that the machine's own limit stays as it is."""
    user = ordinary(small_shm)
    nested = user.within("unshare", "--user", "--map-root-user", "sh", "-c", LIMIT, "sh",
                         "setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all", program=public / "shmguard")
    if nested.run("true").returncode != 0:
        pytest.skip("cannot create a user namespace with its own limits")
    done = nested.shmguard("run", "-q", "--shm", wish, "--", *SIZE)
    assert done.returncode == code, done
    assert done.stderr.count(b"\n") == 1
    if code == 0:
        assert size_seen(done) == 64
    else:
        assert b"max_user_namespaces is 0" in done.stderr
        assert done.stdout == b""


def test_no_directory():
    with prepared_namespace("mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3") as machine:
        done = machine.shmguard("run", "-q", "--shm", "100M", "--", "true")
        assert done.returncode == 69
        assert b"no directory /dev/shm" in done.stderr
        done = machine.shmguard("run", "--check", "--", "true")
        assert done.returncode == 2
        assert b"/dev/shm does not exist" in done.stdout


@pytest.mark.parametrize("wish", ["64", "0", "", "on", "-1g", "1g,exec", "\x1b[2J"])
def test_bad_size(here, wish):
    done = here.shmguard("run", "--shm", wish, "--", "true")
    assert done.returncode == 64
    assert done.stderr.count(b"\n") == 1
    assert b"\x1b" not in done.stderr


def test_check(small_shm):
    """Starts nothing. The guard makes a small /dev/shm harmless; without the guard, a small /dev/shm kills the job."""
    done = small_shm.shmguard("run", "--check", "--", "touch", "/tmp/shmguard-must-not-be")
    assert done.returncode in (0, 1), done
    assert b"for all batches in flight" not in done.stdout
    done = small_shm.shmguard("run", "--check", "--no-guard", "--", "touch", "/tmp/shmguard-must-not-be")
    assert done.returncode == 2
    assert b"/dev/shm has only 64.0 MiB for all" in done.stdout
    assert b"--no-guard" in done.stdout
    done = small_shm.shmguard("run", "--check", "--no-guard", "--shm", "4g", "--", "true")
    assert b"for all batches in flight" not in done.stdout
    assert not os.path.exists("/tmp/shmguard-must-not-be")


def test_said_before_the_start(small_shm):
    done = small_shm.shmguard("run", "--no-guard", "--", "true")
    assert done.returncode == 0
    assert b"critical: /dev/shm has only 64.0 MiB for all" in done.stderr
    assert small_shm.shmguard("run", "--no-guard", "--quiet", "--", "true").stderr == b""
