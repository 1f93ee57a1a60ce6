# SPDX-License-Identifier: Apache-2.0
"""A captured machine has everything that is read from a real one, and no secrets. test_roots.py checks that its answers
are the same."""

import os
import re
import runpy
import subprocess
import sys
import time

import pytest

from conftest import NOBODY, PROJECT, TRAIN, children, end_tree, needs_root, open_to_all, wait_until

CAPTURE = PROJECT / "scripts" / "capture-root"
SECRET = "capture-me-not-7f3a"

# PyTorch with two workers. Its environment and arguments contain secrets that must not leave the machine.
PROGRAM = f"""
import runpy, sys
sys.argv = [{str(TRAIN)!r}, "--hold", "300", "--batch", "16"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def secretive(private_shm, python, tmp_path):
    """The pid of a training in a private /dev/shm, with a secret in its environment and in its arguments."""
    script = tmp_path / "my-train.py"
    script.write_text(PROGRAM)
    job = private_shm.popen(python, "-u", script, f"--password={SECRET}-argument", stdout=subprocess.PIPE,
                            env={**os.environ, "SECRET": f"{SECRET}-environment"}, start_new_session=True)
    try:
        assert job.stdout.readline() == b"holding\n"
        time.sleep(0.7)  # the workers fill their queues
        yield job.pid
    finally:
        end_tree(job)


def capture(machine, directory, *options, code=0, **kwargs):
    done = machine.run("/usr/bin/python3", CAPTURE, *options, directory, **kwargs)
    assert done.returncode == code, done.stderr.decode()
    return done.stderr.decode()


def every_byte(directory):
    """The names, link targets and contents of everything in the tree."""
    parts = []
    for top, directories, files in os.walk(os.fsencode(directory)):
        for name in directories + files:
            path = os.path.join(top, name)
            parts.append(os.path.relpath(path, os.fsencode(directory)))
            if os.path.islink(path):
                parts.append(os.readlink(path))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    parts.append(file.read())
    return b"\n".join(parts)


@needs_root
@pytest.mark.timed
def test_what_the_readers_read_is_there_and_secrets_are_not(private_shm, secretive, tmp_path):
    tree = tmp_path / "tree"
    said = capture(private_shm, tree, env={**os.environ, "SECRET": SECRET, "SLURM_JOB_ID": "4711"})
    assert said.count("\n") == 1 and str(tree) in said

    for path in ["proc/meminfo", "proc/vmstat", "proc/uptime", "proc/sys/vm/max_map_count", "dev/kmsg", "proc/1/stat"]:
        assert (tree / path).is_file(), path
    workers = children(secretive)
    for pid in [secretive, *workers]:
        for name in ["stat", "status", "statm", "smaps_rollup", "maps", "smaps", "cmdline", "cgroup", "mountinfo",
                     "limits", "comm"]:
            assert (tree / f"proc/{pid}" / name).stat().st_size > 0, name
        assert (tree / f"proc/{pid}/exe").is_symlink() and (tree / f"proc/{pid}/ns/pid").is_symlink()
    ancestors = (tree / f"proc/{os.getpid()}/stat")
    assert ancestors.is_file(), "the ancestors must be captured too"
    self_pid = os.readlink(tree / "proc/self")
    assert (tree / "proc" / self_pid / "mountinfo").is_file()

    stats = (tree / ".capture/stat").read_text()
    links = [link for link in (tree / f"proc/{secretive}/fd").iterdir() if "/dev/shm/torch_" in os.readlink(link)]
    assert links
    for link in links:
        assert f"\nproc/{secretive}/fd/{link.name} " in stats
        assert (tree / f"proc/{secretive}/fdinfo/{link.name}").is_file()
    assert f"\nproc/{secretive}/map_files/" in stats
    statfs = (tree / ".capture/statfs").read_text()
    assert "dev/shm 1021994 " in statfs and f"proc/{secretive}/cwd " in statfs and "proc/self/cwd " in statfs
    assert (tree / ".capture/env").read_text() == "SLURM_JOB_ID=4711\n"

    # The shared memory holds image data, none of which may be in the tree.
    assert all(file.stat().st_size == 0 for file in (tree / "dev/shm").rglob("*") if file.is_file())
    assert SECRET.encode() not in every_byte(tree)
    command = (tree / f"proc/{secretive}/cmdline").read_bytes().split(b"\0")
    assert command[1:3] == [b"-u", b"my-train.py"] and b"\xe2\x80\xa6" in command
    assert tree.stat().st_mode & 0o077 == 0

    asked = tmp_path / "asked"
    capture(private_shm, asked, "--arguments", env={**os.environ, "SECRET": SECRET})
    text = every_byte(asked)
    assert f"--password={SECRET}-argument".encode() in text
    assert f"{SECRET}-environment".encode() not in text


@needs_root
def test_odd_names_and_contents_of_shared_memory(private_shm, tmp_path):
    names = [b"blank name", b"new\nline", b"back\\slash", b"\xff\xfe not UTF-8", b"dir/inner", b"$(reboot)"]
    program = """
import os, sys
os.mkdir("/dev/shm/dir")
os.symlink("/etc", "/dev/shm/link")
os.mkfifo("/dev/shm/fifo")
for name in eval(sys.argv[1]):
    with open(b"/dev/shm/" + name, "wb") as file:
        file.write(b"contents-of-a-segment")
"""
    assert private_shm.run(sys.executable, "-c", program, repr(names)).returncode == 0
    tree = tmp_path / "tree"
    capture(private_shm, tree)
    found = {os.path.relpath(os.path.join(top, name), os.fsencode(tree / "dev/shm"))
             for top, _, files in os.walk(os.fsencode(tree / "dev/shm")) for name in files}
    assert found == set(names)
    text = every_byte(tree)
    assert b"contents-of-a-segment" not in text
    stats = (tree / ".capture/stat").read_bytes().split(b"\n")
    assert {line.split(b" ")[0] for line in stats if line.startswith(b"dev/shm/")} == {
        b"dev/shm/blank\\040name", b"dev/shm/new\\012line", b"dev/shm/back\\134slash",
        b"dev/shm/\xff\xfe\\040not\\040UTF-8", b"dev/shm/dir", b"dev/shm/dir/inner", b"dev/shm/$(reboot)"}
    assert all(len(line.split(b" ")) == 10 for line in stats if line)


COMMANDS = [
    ("python3 -u train.py --token=SECRET", "python3 -u train.py …"),
    ("/usr/bin/python3.11 /home/me/SECRET/train.py", "/usr/bin/python3.11 train.py"),
    ("python -m torch.distributed.run --nproc_per_node=2 SECRET", "python -m torch.distributed.run …"),
    ("python /opt/venv/bin/torchrun SECRET", "python /opt/venv/bin/torchrun …"),
    ("python /opt/venv/bin/accelerate launch SECRET", "python /opt/venv/bin/accelerate launch …"),
    ("python -X SECRET -W SECRET -Xdev=SECRET x.py", "python -X … -W … … x.py"),
    ("python -c SECRET", "python -c …"),
    ("python -c", "python …"),
    ("bash -c SECRET", "bash …"),
    ("/usr/lib/torch/bin/torch_shm_manager", "/usr/lib/torch/bin/torch_shm_manager"),
    ("", ""),
]


@pytest.mark.parametrize("command, cut", COMMANDS)
def test_commands_are_cut(command, cut):
    script = runpy.run_path(str(CAPTURE))
    found = script["cut_command"](command.encode().replace(b" ", b"\0") + b"\0" if command else b"")
    assert found == (cut.encode().replace(b" ", b"\0") + b"\0" if cut else b"")


def test_commands_with_blanks_are_cut():
    cut = runpy.run_path(str(CAPTURE))["cut_command"]
    spawned = b"/usr/bin/python3\0-c\0from multiprocessing.spawn import spawn_main; spawn_main(SECRET)\0SECRET\0"
    assert cut(spawned) == "/usr/bin/python3\0-c\0from multiprocessing.spawn import spawn_main …\0…\0".encode()
    assert cut(b"postgres: alice SECRET idle\0") == "postgres:\0…\0".encode()  # the program has renamed itself


def test_an_ordinary_user_captures_what_he_can(here, ordinary, tmp_path):
    open_to_all(tmp_path)
    done = ordinary(here).run("/usr/bin/python3", CAPTURE, tmp_path / "tree")
    assert done.returncode == 0, done
    assert (tmp_path / "tree/.capture/ids").read_text() == f"{NOBODY if os.geteuid() == 0 else os.geteuid()}\n"
    if os.geteuid() == 0:  # pid 1 cannot be inspected, and the tree shows that
        assert (tmp_path / "tree/proc/1/status").is_file() and not (tmp_path / "tree/proc/1/maps").exists()


def test_the_kernel_log_keeps_only_what_is_about_memory(here, tmp_path):
    capture(here, tmp_path / "tree")
    log = tmp_path / "tree/dev/kmsg"
    if not log.exists():
        pytest.skip("the kernel log cannot be read here")
    words = re.compile(rb"oom|Kill(ed)? process|killed as a result|Skip killing")
    assert all(words.search(line) for line in log.read_bytes().split(b"\n") if line)


def test_other_processes_on_request(here, tmp_path):
    sleeper = subprocess.Popen(["sh", "-c", "sleep 300; :"])
    other = subprocess.Popen(["sleep", "300"])
    try:
        wait_until(lambda: children(sleeper.pid), "the shell has a child")
        child = children(sleeper.pid)[0]
        capture(here, tmp_path / "default")
        capture(here, tmp_path / "asked", "--pid", sleeper.pid)
        capture(here, tmp_path / "all", "--all")
        assert not (tmp_path / f"default/proc/{sleeper.pid}").exists()
        for name in ["asked", "all"]:
            assert (tmp_path / name / f"proc/{sleeper.pid}/stat").is_file()
            assert (tmp_path / name / f"proc/{child}/stat").is_file()
        assert (tmp_path / f"all/proc/{other.pid}/stat").is_file() and not (tmp_path / f"asked/proc/{other.pid}").exists()
    finally:
        end_tree(sleeper)
        end_tree(other)


BAD = {
    "no directory": ([], 64, "DIR"),
    "unknown option": (["--frobnicate", "x"], 64, "--frobnicate"),
    "no number": (["--pid", "me", "x"], 64, "me"),
    "not empty": (["full"], 65, "full"),
    "a file": (["full/file"], 65, "full/file"),
    "in a file": (["full/file/x"], 65, "full/file/x"),
    "gone": (["--pid", "2147483646", "new"], 65, "2147483646"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(here, tmp_path, case):
    arguments, code, named = BAD[case]
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("keep me")
    done = here.run(sys.executable, CAPTURE, *arguments, cwd=tmp_path)
    text = done.stderr.decode()
    assert done.returncode == code and done.stdout == b""
    assert text.startswith("capture-root: ") and text.count("\n") == 1 and named in text, text
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    assert (tmp_path / "full/file").read_text() == "keep me"


def test_the_variables_are_those_that_are_asked_for():
    asked = set(re.findall(r'root_environment\(root, "(\w+)"', (PROJECT / "src/kernel/sandbox.c").read_text()))
    kept = re.search(r"^ENVIRONMENT = \((.*?)\)", CAPTURE.read_text(), re.M | re.S)[1]
    assert asked == set(re.findall(r'"(\w+)"', kept)) and asked
