"""Input that cannot be used: one clear line on stderr that names it and the remedy, the right exit code, nothing else."""

import os
import re
import signal
import subprocess

import pytest

from conftest import PROGRAM, PROJECT, SANITIZED, Machine, needs_root, prepared_namespace

COMMANDS = ["doctor", "ps", "clean", "explain"]


def refused(done, code, *said):
    """The run ended as bad input must: the code, one line, nothing on stdout."""
    assert done.returncode == code, done
    assert done.stdout in (b"", None), done
    assert done.stderr.endswith(b"\n") and done.stderr.count(b"\n") == 1, done
    assert done.stderr.startswith(b"shmguard: "), done
    assert all(word.encode() in done.stderr for word in said), done
    assert all(byte >= 0x20 for byte in done.stderr[:-1]), "a terminal must not be steered by what we quote"


@pytest.mark.parametrize("line, code, said", [
    # Commands and options that do not exist.
    (["pss"], 64, ["pss", "did you mean ps?"]),
    (["docter", "--json"], 64, ["docter", "did you mean doctor?"]),
    (["frobnicate"], 64, ["frobnicate", "--help"]),
    (["--frobnicate"], 64, ["--frobnicate", "--help"]),
    ([""], 64, ['""']),
    (["\033[31mps\nps"], 64, ["\\x1b[31mps\\nps"]),
    (["ps", "--segmets"], 64, ["ps: ", "--segmets", "did you mean --segments?"]),
    (["ps", "--jsn"], 64, ["did you mean --json?"]),
    (["clean", "--dryrun"], 64, ["did you mean --dry-run?"]),
    (["clean", "--root", "/"], 64, ["--root"]),
    (["explain", "--pid", "1"], 64, ["--pid"]),
    (["doctor", "-z"], 64, ["-z", "--help"]),
    (["doctor", "--json=yes"], 64, ["--json takes no value"]),
    # Values.
    (["ps", "--pid"], 64, ["--pid needs a value"]),
    (["ps", "--pid", "abc"], 64, ["--pid", '"abc"']),
    (["ps", "--pid", ""], 64, ["--pid", '""']),
    (["ps", "--pid", "0"], 64, ["--pid", '"0"']),
    (["ps", "--pid", "-1"], 64, ["--pid", '"-1"']),
    (["ps", "--pid=1 "], 64, ["--pid", '"1 "']),
    (["ps", "--pid=0x10"], 64, ["--pid", '"0x10"']),
    (["doctor", "--pid", "99999999999999999999"], 64, ["--pid", '"99999999999999999999"']),
    (["ps", "--sort", "nonsense"], 64, ["--sort", "rss", '"nonsense"']),
    (["ps", "--sort", ""], 64, ["--sort", '""']),
    (["ps", "--sort", "size"], 64, ["--sort", '"size"', "--segments"]),
    (["ps", "--color", "blue"], 64, ["auto, always or never", '"blue"']),
    (["ps", "1234"], 64, ['"1234"', "--help"]),
    (["explain", "a", "b"], 64, ['"b"']),
    # Trees that are none.
    (["ps", "--root", "/nonexistent"], 65, ["/nonexistent", "No such file", "capture-root"]),
    (["doctor", "--root", "/etc/passwd"], 65, ["/etc/passwd", "Not a directory", "capture-root"]),
    (["doctor", "--root", "/etc"], 65, ["/etc", "capture-root"]),
    (["ps", "--root", ""], 65, ["--root", "capture-root"]),
])
def test_one_line(here, line, code, said):
    refused(here.shmguard(*line), code, *said)


def test_a_process_that_is_gone(here):
    gone = subprocess.Popen(["true"])
    gone.wait()
    for command in ["ps", "doctor"]:
        refused(here.shmguard(command, "--pid", gone.pid), 65, f"no process {gone.pid}", "shmguard ps")


def test_a_tree_without_anything_in_it(here, tmp_path):
    (tmp_path / "proc").mkdir()
    for command in ["ps", "doctor"]:
        refused(here.shmguard(command, "--root", tmp_path), 65, str(tmp_path))
    name = tmp_path / "a\nb"
    refused(here.shmguard("ps", "--root", name), 65, "a\\nb")


@needs_root
def test_what_an_ordinary_user_may_not_read(here, ordinary, tmp_path):
    user = ordinary(here)
    refused(user.shmguard("ps", "--pid", "1"), 77, "process 1 ", "root")
    refused(user.shmguard("doctor", "--pid", "1"), 77, "process 1 ", "root")
    tmp_path.chmod(0o700)
    refused(user.shmguard("ps", "--root", tmp_path / "tree"), 77, str(tmp_path), "Permission denied")


@needs_root
@pytest.mark.skipif(SANITIZED, reason="AddressSanitizer itself needs /proc")
def test_no_proc():
    for prepare in ["mount -t tmpfs tmpfs /proc", "while umount -l /proc 2>/dev/null; do :; done"]:
        with prepared_namespace(prepare) as machine:
            for command in ["ps", "doctor", "clean"]:
                refused(machine.shmguard(command), 69, "/proc", "mount -t proc")
            # A log can be explained all the same.
            explained = machine.shmguard("explain", input=b"RuntimeError: received 0 items of ancdata\n")
            assert explained.returncode == 0 and b"fd-exhausted" in explained.stdout and explained.stderr == b""


def test_no_command(here):
    done = here.shmguard()
    assert done.returncode == 64 and done.stdout == b""
    assert done.stderr.startswith(b"Usage: shmguard COMMAND")
    assert all(name.encode() in done.stderr for name in COMMANDS)


@pytest.mark.parametrize("line", [["--help"], ["-h"], *([name, "--help"] for name in COMMANDS), *([name, "-h"] for name in COMMANDS)])
def test_help(here, line):
    done = here.shmguard(*line)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.startswith(b"Usage: shmguard " + (line[0].encode() if len(line) > 1 else b"COMMAND"))
    assert b"--help" in done.stdout
    assert max(map(len, done.stdout.decode().splitlines())) <= 80


def test_help_and_manual_name_the_same_options(here):
    manual = (PROJECT / "man" / "shmguard.1").read_text().replace("\\-", "-")
    for command in COMMANDS:
        synopsis = re.split(r"^\.B shmguard ", manual, flags=re.M)[1 + COMMANDS.index(command)]
        assert synopsis.startswith(command + "\n")
        named = set(re.findall(r"--[a-z-]+", synopsis.split(".br\n")[0]))
        text = here.shmguard(command, "--help").stdout.decode()
        assert named and named | {"--help"} == set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.M))


RUNS = [["ps"], ["ps", "--segments"], ["ps", "--json"], ["doctor"], ["doctor", "--json"], ["clean", "--dry-run"],
        ["clean", "--dry-run", "--json"], ["explain", "/dev/null"], ["explain", "/dev/null", "--json"], ["--help"],
        ["ps", "--help"], ["--version"]]


@needs_root
@pytest.mark.parametrize("line", RUNS, ids=" ".join)
def test_output_that_cannot_be_written(private_shm, line):
    with open("/dev/full", "wb") as full:
        refused(private_shm.shmguard(*line, stdout=full), 70, "No space left on device")
    closed = private_shm.within("sh", "-c", '"$@" >&-', "sh")
    refused(closed.shmguard(*line), 70, "could not be written")


@needs_root
def test_clean_tells_in_its_code_that_its_report_is_lost(private_shm):
    with open("/dev/full", "wb") as full:
        assert private_shm.shmguard("clean", stdout=full).returncode == 70


@pytest.mark.parametrize("line", [["ps", "--all"], ["ps", "--json", "--all"]], ids=" ".join)
def test_a_reader_that_has_seen_enough(line):
    """`shmguard ps | head -n 1` says nothing on stderr, whatever becomes of SIGPIPE."""
    for ignore in [False, True]:
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([PROGRAM, *line], stdout=writing, stderr=subprocess.PIPE, check=False,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, [signal.SIG_DFL, signal.SIG_IGN][ignore]))
        os.close(writing)
        assert done.returncode == (0 if ignore else -signal.SIGPIPE)
        assert done.stderr == b""


def test_closed_standard_descriptors_are_not_taken_for_files():
    """With 0, 1 and 2 closed, the first files opened would get these numbers, and be written to."""
    closed = Machine(["sh", "-c", '"$@" <&- >&- 2>&-', "sh"])
    assert closed.shmguard("ps").returncode == 70
    assert closed.shmguard("frobnicate").returncode == 64
    assert closed.shmguard("explain").returncode in (65, 70)
