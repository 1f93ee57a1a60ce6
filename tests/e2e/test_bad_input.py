# SPDX-License-Identifier: Apache-2.0
"""Input that cannot be used: one clear line on stderr that names it and says what to do, the right exit code, nothing else."""

import os
import re
import signal
import subprocess

import pytest

from conftest import PROGRAM, SANITIZED, Machine, needs_root, prepared_namespace



def help_of(*words):
    return subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True, check=True).stdout


def options_of(command):
    """Long option names → their argument as --help shows it, or None for a flag."""
    return {name: argument or None for name, argument in
            re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)(?: (\S+))?  ", help_of(command), re.M) if name not in ("--help", "--lang")}


COMMANDS = re.findall(r"^  (\w+) ", help_of(), re.M)
OPTIONS = [(command, name, argument) for command in COMMANDS for name, argument in options_of(command).items()]


def refused(done, code, *said):
    """Checks that bad input was refused: the exit code, one line on stderr, nothing on stdout."""
    assert done.returncode == code, done
    assert done.stdout in (b"", None), done
    assert done.stderr.endswith(b"\n") and done.stderr.count(b"\n") == 1, done
    assert done.stderr.startswith(b"shmguard: "), done
    assert all(word.encode() in done.stderr for word in said), done
    assert all(byte >= 0x20 for byte in done.stderr[:-1]), "quoted input must not contain control characters"


@pytest.mark.parametrize("line, said", [
    (["pss"], ["pss", "did you mean ps?"]),
    (["docter", "--json"], ["docter", "did you mean doctor?"]),
    (["frobnicate"], ["frobnicate", "--help"]),
    (["--frobnicate"], ["--frobnicate", "--help"]),
    ([""], ['""']),
    (["\033[31mps\nps"], ["\\x1b[31mps\\nps"]),
])
def test_unknown_commands(here, line, said):
    refused(here.shmguard(*line), 64, *said)


# What each command needs before and after the option that is tested.
AROUND = {
    "plan": (["--batch-bytes", "1M", "--workers", "2"], []),
    "run": (["--retry", "1"], ["--", "true"]),
    "tune": (["--vary", "n=1,2"], ["--", "true", "{n}"]),
    "record": (["-o", "/nonexistent/run.db"], ["--", "true"]),
    "report": ([], ["/nonexistent/run.db"]),
    "watch": (["--once"], []),
    "where": ([], ["1"]),
    "kernel": ([], ["install"]),
}

# Values that an option with this argument must refuse.
BAD_VALUES = {
    "PID": ["abc", "", "0", "-1", "1 ", "0x10", "99999999999999999999"],
    "N": ["x", "", "-1", "1.5", "99999999999999999999"],
    "FD": ["x", "", "-1", "1.5", "99999999999999999999"],
    "UID": ["x", "", "-1", "1.5", "99999999999999999999"],
    "SECONDS": ["soon", "", "-1", "5 parsecs"],
    "TIME": ["soon", "", "-1", "5 parsecs"],
    "SIZE": ["lots", "", "-1", "0", "1Q"],
    "SIZE|auto|off": ["lots", "", "-1", "0", "on"],
    "auto|off": ["on", ""],
    "WHEN": ["blue", ""],
    "HOW": ["neatly", ""],
    "NAME": ["carrier_pigeon", ""],
    "KIND": ["smell", ""],
    "KEY": ["nonsense", ""],
    "FACTOR": ["0.5", "x", ""],
    "N|A..B": ["x", "", "2..1", "0..3"],
    "REGEX": ["(", "[0-9]+"],
    "NAME=V1,V2,...": ["batch", "a-b=1", ""],
    "DTYPE[D0,D1,...]": ["float33", "float32[3", "float32[0]", ""],
    '"NAME=VALUE;..."': ["workers", "wrkers=2"],
    "ID": ["shm-orphan", "shm", ""],
    "WORD": ["a b", "", "../x"],
    "ADDRESS": ["node17", "", "127.0.0.1:x", "[::1", "1.2.3.4:65536"],
}
PATHS = {"FILE", "DIR", "ARGS", "PROGRAM", "TEXT"}  # any text can be a path


def with_option(command, *words):
    before, after = AROUND.get(command, ([], []))
    return [command, *before, *words, *after]


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_options(here, command):
    refused(here.shmguard(*with_option(command, "--frobnicate")), 64, f"{command}: ", "--frobnicate", "--help")
    refused(here.shmguard(*with_option(command, "-Z")), 64, f"{command}: ", "-Z", "--help")
    for name in options_of(command):
        wrong = name[:-2] + name[-1] + name[-2] if len(name) > 5 and name[-1] != name[-2] else name + "q"
        if wrong not in options_of(command):
            refused(here.shmguard(*with_option(command, wrong)), 64, f"{command}: ", wrong)


@pytest.mark.parametrize("command, name, argument", OPTIONS, ids=lambda value: str(value))
def test_bad_values(here, command, name, argument):
    if argument is None:
        return refused(here.shmguard(*with_option(command, f"{name}=yes")), 64, f"{command}: ", f"{name} takes no value")
    refused(here.shmguard(command, name), 64, f"{command}: ", f"{name} needs a value", argument)
    if argument in PATHS:
        return None
    for value in BAD_VALUES[argument]:
        done = here.shmguard(*with_option(command, f"{name}={value}"))
        refused(done, 64, f"{command}: ", name.removeprefix("--"))
        assert re.split(r"[=;.[]", value)[0].encode() in done.stderr, done
    return None


# What is invalid for one command only.
CASES = {
    "doctor": [(["extra"], 64, ['"extra"', "--help"]),
               (["--root", "/nonexistent"], 65, ["/nonexistent", "No such file", "capture-root"]),
               (["--root", "/etc/passwd"], 65, ["/etc/passwd", "Not a directory", "capture-root"]),
               (["--root", "/etc"], 65, ["/etc", "capture-root"])],
    "ps": [(["1234"], 64, ['"1234"', "--help"]),
           (["--segmets"], 64, ["--segmets", "did you mean --segments?"]),
           (["--jsn"], 64, ["did you mean --json?"]),
           (["--sort", "size"], 64, ["--sort", '"size"', "--segments"]),
           (["--segments", "--sort", "rss"], 64, ["--sort", '"rss"', "without --segments"]),
           (["--color", "blue"], 64, ["auto, always or never", '"blue"']),
           (["--root", "/nonexistent"], 65, ["/nonexistent", "No such file", "capture-root"]),
           (["--root", ""], 65, ["--root", "capture-root"])],
    "clean": [(["extra"], 64, ['"extra"', "--help"]),
              (["--dryrun"], 64, ["did you mean --dry-run?"]),
              (["--root", "/"], 64, ["--root"])],
    "explain": [(["a", "b"], 64, ['"b"', "--help"]),
                (["--pid", "1"], 64, ["--pid"]),
                (["/nonexistent"], 65, ["/nonexistent", "No such file", "pipe it in"]),
                (["/"], 65, ["/: Is a directory"]),
                (["a\033[31m\nb"], 65, ["a\\x1b[31m\\nb"])],
    "plan": [([], 64, ["--sample", "--batch-bytes"]),
             (["--batch-bytes", "1M", "--workers", "2", "--nodes", "/nonexistent"], 65, ["--nodes /nonexistent", "No such file"]),
             (["--batch-bytes", "1M", "--workers", "2", "--nodes", "/dev/null"], 65, ["/dev/null", "no node in it"]),
             (["--batch-bytes", "1M", "--workers", "2", "--nodes", "/etc/passwd"], 65, ["/etc/passwd:1", "not the name of a node"]),
             (["--batch-bytes", "1M", "--workers", "2", "--process-memory", "1G"], 64, ["--process-memory needs --nodes"]),
             (["--kind", "image", "--nodes", "/dev/null"], 64, ["--kind and --nodes"]),
             (["extra"], 64, ['"extra"', "--help"]),
             (["--measure"], 64, ["--measure", "-- python train.py"]),
             (["--kind", "image", "--root", "/nonexistent"], 65, ["/nonexistent", "capture-root"]),
             (["--measure", "--", "/nonexistent/train"], 127, ["/nonexistent/train", "command not found"]),
             (["--measure", "--", "/etc/passwd"], 126, ["/etc/passwd", "Permission denied"])],
    "serve": [(["extra"], 64, ['"extra"', "--help"]),
              (["--listen", "9477"], 64, ["--listen", '"9477"', "127.0.0.1:9477"]),
              (["--listen", "a\033[31m"], 64, ["a\\x1b[31m"]),
              (["--interval", "0.01"], 64, ["--interval", "0.1 s"]),
              (["--processes", "1001"], 64, ["--processes", "1000"]),
              (["--no-auth", "--token-file", "/etc/hostname"], 64, ["--token-file", "--no-auth"]),
              (["--textfile", "/tmp", "--no-auth"], 64, ["--no-auth", "--listen"]),
              (["--token-file", "/nonexistent"], 65, ["/nonexistent", "No such file", "openssl rand"]),
              (["--token-file", "/etc/passwd"], 65, ["/etc/passwd", "16 to 256", "openssl rand"]),
              (["--listen", "192.0.2.1:0"], 69, ["192.0.2.1:0", "Cannot assign", "--listen"]),
              (["--textfile", "/nonexistent"], 65, ["--textfile /nonexistent", "No such file", "node_exporter"]),
              (["--textfile", "/etc/passwd"], 65, ["--textfile /etc/passwd", "Not a directory"])],
    "run": [([], 64, ["no command", "-- python train.py"]),
            (["train.py"], 64, ["put -- before", "-- train.py"]),
            (["--budget", "1G", "--no-guard", "--", "true"], 64, ["--budget", "--no-guard"]),
            (["--degrade", "n=2,1", "--", "true"], 64, ["--degrade", "--retry N"]),
            (["--report", "/nonexistent/r.json", "--", "true"], 65, ["/nonexistent/r.json", "was not started"]),
            (["--report", "/", "--", "true"], 65, ["--report /", "Is a directory"]),
            (["--record", "/nonexistent/r.db", "--", "true"], 65, ["/nonexistent/r.db", "does not exist"]),
            (["--record", "/", "--", "true"], 65, ["--record", "is a directory"]),
            (["-q", "--", "/nonexistent/train"], 127, ["/nonexistent/train", "command not found"]),
            (["-q", "--", "/etc/passwd"], 126, ["/etc/passwd", "Permission denied"])],
    "tune": [([], 64, ["no command", "-- python train.py"]),
             (["train.py"], 64, ["put -- before", "-- train.py"]),
             (["--vary", "n=1,2", "--", "true"], 64, ["{n}", "where its value goes"]),
             (["--vary", "n=1,2", "--state", "/nonexistent/s", "--", "true", "{n}"], 65, ["/nonexistent/s", "No such file"]),
             (["--vary", "n=1,2", "--state", "/etc/passwd", "--", "true", "{n}"], 65, ["/etc/passwd", "another file"]),
             (["--vary", "n=1,2", "--rate", "(x)", "--", "/nonexistent/train", "{n}"], 127, ["command not found"])],
    "record": [([], 64, ["-o"]),
               (["train.py"], 64, ["put -- before", "-- train.py"]),
               (["-o", "run.db"], 64, ["--pid PID", "-- python train.py"]),
               (["-o", "run.db", "--pid", "1", "--", "true"], 64, ["--pid", "not both"]),
               (["-o", "run.db", "--pid", "1", "--where"], 64, ["--where", "shmguard where 1"]),
               (["-o", "/nonexistent/run.db", "--", "true"], 65, ["/nonexistent/run.db", "does not exist"]),
               (["-o", "/", "--", "true"], 65, ["is a directory"]),
               (["-o", "/etc/passwd", "--", "true"], 65, ["/etc/passwd", "not a recording", "left unchanged"])],
    "report": [([], 64, ["shmguard report FILE"]), (["/proc/self/fdinfo"], 65, ["/proc/self/fdinfo", "no recording in the directory"]),
               (["a", "b"], 65, ["a: No such file"]),
               (["/nonexistent/run.db"], 65, ["/nonexistent/run.db", "No such file", "shmguard record"]),
               (["/etc/passwd"], 65, ["/etc/passwd", "not a recording", "shmguard record"]),
               (["/"], 65, ["no recording in the directory /", "--record"])],
    "watch": [(["extra"], 64, ['"extra"', "--help"]),
              ([], 64, ["not a terminal", "--once"]),
              (["--once", "--interval", "0"], 64, ["--interval", "0.1 s"]),
              (["--once", "--replay", "/nonexistent/run.db"], 65, ["/nonexistent/run.db", "No such file"]),
              (["--once", "--replay", "/etc/passwd"], 65, ["/etc/passwd", "not a recording"]),
              (["--once", "--replay", "x", "--pid", "1"], 64, ["--replay", "--pid"])],
    "where": [([], 64, ["shmguard where PID"]),
              (["soon"], 64, ['"soon"', "shmguard ps"]),
              (["-1"], 64, ["-1"]),
              (["1", "2"], 64, ['"2"', "--help"]),
              (["4194304"], 65, ["no process 4194304", "shmguard ps"])],
    "bugreport": [(["extra"], 64, ['"extra"', "--help"]),
                  (["-o", "/etc/passwd"], 65, ["/etc/passwd", "File exists", "--output"]),
                  (["-o", "/nonexistent/b.tar.gz"], 65, ["/nonexistent/b.tar.gz", "No such file", "--output"]),
                  (["-o", "/nonexistent/b", "--report", "/nonexistent/r.json"], 65, ["/nonexistent/r.json", "No such file", "run --report"]),
                  (["-o", "/nonexistent/b", "--report", "/etc/passwd"], 65, ["/etc/passwd", "not a report"])],
    "kernel": [([], 64, ["shmguard kernel install"]),
               (["remove"], 64, ["shmguard kernel install"]),
               (["install", "--python", "/nonexistent/python"], 69, ["/nonexistent/python", "No such file"]),
               (["install", "--python", "false"], 69, ["false", "pip install ipykernel", "--python"])],
}


def test_every_command_has_cases():
    assert set(CASES) == set(COMMANDS)


@pytest.mark.parametrize("command, line, code, said", [(command, *case) for command, cases in CASES.items() for case in cases],
                         ids=lambda value: str(value) if isinstance(value, (str, int)) else None)
def test_one_line(here, command, line, code, said):
    refused(here.shmguard(command, *line, stdin=subprocess.DEVNULL), code, *said)


def test_a_process_that_is_gone(here):
    gone = subprocess.Popen(["true"])
    gone.wait()
    for line in [["ps"], ["doctor"], ["plan"], ["record", "-o", "/nonexistent"], ["watch", "--once"]]:
        refused(here.shmguard(*line, "--pid", gone.pid), 65, f"no process {gone.pid}", "shmguard ps")


def test_a_tree_without_anything_in_it(here, tmp_path):
    (tmp_path / "proc").mkdir()
    for line in [["ps"], ["doctor"], ["plan", "--kind", "image"]]:
        refused(here.shmguard(*line, "--root", tmp_path), 65, str(tmp_path))
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
            # A log can still be explained.
            explained = machine.shmguard("explain", input=b"RuntimeError: received 0 items of ancdata\n")
            assert explained.returncode == 0 and b"fd-exhausted" in explained.stdout and explained.stderr == b""


def test_no_command(here):
    done = here.shmguard()
    assert done.returncode == 64 and done.stdout == b""
    ways = re.findall(r"^  shmguard (\w+)(.*)$", done.stderr.decode(), re.M)
    assert [name for name, _ in ways] == ["explain", "run", "run", "plan", "record", "report", "tune", "watch", "doctor"]
    for name, words in ways:
        assert set(re.findall(r"--[a-z]+", words.split(" -- ")[0])) <= {*options_of(name)}
    assert b"shmguard --help" in done.stderr and max(map(len, done.stderr.splitlines())) <= 80


def test_version(here):
    """The first line is for scripts, the others are for bug reports."""
    done = here.shmguard("--version", text=True)
    first, *rest = done.stdout.splitlines()
    assert done.returncode == 0 and re.fullmatch(r"shmguard \d+\.\d+\.\d+", first)
    rows = {row[:12].strip(): row[14:] for row in rest if row[0] != " "}
    assert list(rows) == ["commit", "built with", "libraries", "kernel", "tested with"]
    assert re.match(r"(gcc|clang) \d", rows["built with"]) and rows["kernel"].startswith(f"Linux {os.uname().release}, ")
    assert re.fullmatch(r"[0-9a-f]{7,40}(-dirty)?|not known", rows["commit"])
    features = [row.split()[0] for row in rest if re.match(r" +(yes|no|\?) ", row)]
    assert len(features) == 5 and features[:2] == ["yes", "yes"]


def test_version_says_what_is_forbidden(here):
    """In a user namespace that forbids further ones."""
    done = here.run("unshare", "--user", "--map-root-user", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$0" --version', PROGRAM, text=True)
    if "unshare" in done.stderr:
        pytest.skip(f"no user namespace: {done.stderr}")
    assert re.search(r"^ +no +user namespaces: ", done.stdout, re.M) and re.search(r"^ +yes +memfd_create: ", done.stdout, re.M), done


@pytest.mark.parametrize("line", [["--help"], ["-h"], *([name, "--help"] for name in COMMANDS), *([name, "-h"] for name in COMMANDS)])
def test_help(here, line):
    done = here.shmguard(*line)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.startswith(b"Usage: shmguard " + (line[0].encode() if len(line) > 1 else b"COMMAND"))
    assert b"--help" in done.stdout
    assert max(map(len, done.stdout.decode().splitlines())) <= 80


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
    """`shmguard ps | head -n 1` prints nothing on stderr, whether SIGPIPE is ignored or not."""
    for ignore in [False, True]:
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([PROGRAM, *line], stdout=writing, stderr=subprocess.PIPE, check=False,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, [signal.SIG_DFL, signal.SIG_IGN][ignore]))
        os.close(writing)
        assert done.returncode == (0 if ignore else -signal.SIGPIPE)
        assert done.stderr == b""


def test_closed_standard_descriptors_are_not_taken_for_files():
    """With 0, 1 and 2 closed, the first files to be opened would get these numbers, and output would be written to them."""
    closed = Machine(["sh", "-c", '"$@" <&- >&- 2>&-', "sh"])
    assert closed.shmguard("ps").returncode == 70
    assert closed.shmguard("frobnicate").returncode == 64
    assert closed.shmguard("explain").returncode in (65, 70)
