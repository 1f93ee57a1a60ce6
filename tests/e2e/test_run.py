# SPDX-License-Identifier: Apache-2.0
"""`shmguard run` with real trainings: they survive a small /dev/shm with every byte right, receive signals as without it,
exit with their own code, and leave nothing behind.
"""

import contextlib
import errno
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

from conftest import (PATIENCE, PROGRAM, PYTHONS, TRAIN, cells, children, control_group, free_port, is_sentinel, needs_root,
                      python_of, skip_without_torchrun)

PYTHON = "/usr/bin/python3"
QUIET_PYTHON = ("-W", "ignore")
BATCH = ("--batch", "43", "--side", "512")  # 32 MiB
MARK = "SHMGUARD_TEST_MARK"
STRATEGIES = ("file_descriptor", "file_system")


@pytest.fixture
def mark():
    """An environment that marks the processes of a job, so that they can be found wherever they are."""
    environment = dict(os.environ, **{MARK: str(uuid.uuid4())})
    environment.pop("LD_PRELOAD", None)
    return environment


def marked(environment):
    needle = f"{MARK}={environment[MARK]}".encode()
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if needle in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def end_marked(environment):
    for pid in marked(environment):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def shm_files(machine):
    return machine.run("ls", "-A", "/dev/shm").stdout.decode().split()


def shmem(group):
    """The shared memory that processes of the group have filled and that was not released since."""
    return int(re.search(r"^shmem (\d+)", (group / "memory.stat").read_text(), re.M).group(1))


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def nothing_left(machine, environment, run_pid, group=None):
    assert marked(environment) == []
    assert shm_files(machine) == []
    assert f"@shmguard-{run_pid}-" not in pathlib.Path("/proc/net/unix").read_text()
    if group:
        assert wait_until(lambda: shmem(group) < 1 << 20)


def run_job(machine, environment, *command, options=(), timeout=PATIENCE):
    job = machine.popen(machine.program, "run", *options, "--", *command, env=environment, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = job.communicate(timeout=timeout)
    except BaseException:  # what the job left behind may still hold the pipes
        end_marked(environment)
        job.communicate()
        raise
    return job, out.decode(), err.decode()


def script(tmp_path, text, name="job.py"):
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return path


# --- A small /dev/shm ---------------------------------------------------------------------------------------------


@needs_root
def test_plain_dies(small_shm, python):
    done = small_shm.run_plainly(python, *QUIET_PYTHON, TRAIN, *BATCH, "--steps", 20, "--workers", 4)
    assert done.returncode != 0
    assert b"Bus error" in done.stderr or b"unable to allocate shared memory" in done.stderr


@needs_root
@cells("version, method, strategy",
       [("system", "fork", "file_descriptor"), ("system", "fork", "file_system"), ("2.13", "fork", "file_descriptor"),
        ("2.13", "fork", "file_system"), ("system", "spawn", "file_descriptor"), ("2.13", "spawn", "file_system"),
        ("2.13", "forkserver", "file_descriptor")],
       PYTHONS, ("fork", "spawn", "forkserver"), STRATEGIES, slow=lambda _, method, __: method != "fork")
def test_survives(small_shm, mark, tmp_path, version, method, strategy):
    python = python_of(version)
    report_path = tmp_path / "report.json"
    # Otherwise each worker loads PyTorch again, or starts a manager, which loads it too.
    workers = 4 if (method, strategy) == ("fork", "file_descriptor") else 2
    with control_group(small_shm) as (machine, group):
        job, out, err = run_job(machine, mark, python, *QUIET_PYTHON, TRAIN, *BATCH, "--steps", 10, "--workers", workers,
                                "--start-method", method, "--strategy", strategy, options=("--report", report_path))
        assert (job.returncode, "finished 10 steps" in out) == (0, True), (out, err)
        nothing_left(small_shm, mark, job.pid, group)

    report = json.loads(report_path.read_text())
    guard = report["guard"]
    batch = 43 * 3 * 512 * 512
    assert report["exit"] == {"code": 0, "signal": None} and report["cause"]["id"] == "ok"
    assert guard["active"] and guard["fallbacks"] == 0
    assert guard["segments_created"] + guard["segments_reused"] == 10
    assert guard["bytes_backed"] >= 10 * batch
    assert batch <= guard["bytes_peak"] == report["peaks"]["shm"] <= 10 * batch * 1.05
    assert (guard["names_served"] > 0) == (strategy == "file_system")
    assert report["attempts"][0]["seconds"] > 0
    assert "kept out of /dev/shm" in err and "Traceback" not in err


@needs_root
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_ordinary_user(small_shm, ordinary, public, mark, strategy):
    """No special rights are needed."""
    job, out, err = run_job(ordinary(small_shm), mark, PYTHON, *QUIET_PYTHON, public / TRAIN.name, *BATCH, "--steps", 10,
                            "--workers", 2, "--strategy", strategy)
    assert (job.returncode, "finished 10 steps" in out) == (0, True), (out, err)
    assert "kept out of /dev/shm" in err
    nothing_left(small_shm, mark, job.pid)


# --- The command runs as without us -------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [(), ("--no-guard",)])
@pytest.mark.parametrize("command, code, signo, cause", [
    (("true",), 0, None, "ok"),
    (("sh", "-c", "exit 3"), 3, None, "unknown"),
    (("sh", "-c", "kill -KILL $$"), 137, 9, "killed"),
    (("sh", "-c", "kill -TERM $$"), 143, 15, "killed"),
    (("sh", "-c", "kill -SEGV $$"), 139, 11, "segfault"),
    (("sh", "-c", "kill -BUS $$"), 135, 7, "unknown"),
    (("sh", "-c", "exit 139"), 139, None, "segfault"),
])
def test_exit_codes(here, mark, tmp_path, command, code, signo, cause, guard):
    report_path = tmp_path / "report.json"
    job, out, err = run_job(here, mark, *command, options=("--quiet", *guard, "--report", report_path))
    assert (job.returncode, out, err) == (code, "", "")
    report = json.loads(report_path.read_text())
    assert report["schema"] == "shmguard.run/1"
    assert report["exit"] == {"code": code, "signal": signo}
    assert report["cause"]["id"] == cause and report["cause"]["evidence"]
    assert report["attempts"][0]["command"] == list(command)
    assert report["guard"]["active"] == (not guard)
    assert list(tmp_path.iterdir()) == [report_path]


def test_what_cannot_start(here, mark, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    report_path = tmp_path / "report.json"
    for command, code, words in [("no-such-command-here", 127, "command not found"),
                                 (str(plain), 126, "Permission denied"), (str(tmp_path), 126, "Permission denied")]:
        job, out, err = run_job(here, mark, command, options=("--report", report_path))
        assert (job.returncode, out) == (code, "")
        assert words in err and command in err and err.count("\n") == 1
        assert json.loads(report_path.read_text())["exit"] == {"code": code, "signal": None}


@pytest.mark.parametrize("arguments, code, words", [
    ((), 64, "no command"),
    (("--",), 64, "no command"),
    (("python3", "x.py"), 64, "put -- before the command"),
    (("--quite", "--", "true"), 64, "did you mean --quiet?"),
    (("--report", "--", "true"), 64, "--report needs a value"),
    (("--report", "/nowhere/at/all", "--", "touch", "{}"), 65, "No such file or directory"),
    (("--report", "/proc", "--", "touch", "{}"), 65, "Is a directory"),
])
def test_wrong_usage(here, tmp_path, arguments, code, words):
    started = tmp_path / "started"
    done = here.shmguard("run", *[argument.format(started) for argument in arguments])
    assert done.returncode == code
    assert words in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert not started.exists()


@needs_root
def test_report_without_permission(here, ordinary):
    done = ordinary(here).shmguard("run", "--report", "/etc/report.json", "--", "true")
    assert done.returncode == 77 and b"Permission denied" in done.stderr and done.stderr.count(b"\n") == 1


def test_streams_pass_through(here, mark):
    data = os.urandom(1 << 20)
    done = here.shmguard("run", "--quiet", "--", "sh", "-c", "tee /dev/stderr", input=data, env=mark)
    assert (done.returncode, done.stdout == data, done.stderr == data) == (0, True, True)


def test_nobody_reads_the_summary(here, mark, tmp_path):
    report_path = tmp_path / "report.json"
    reading, writing = os.pipe()
    job = here.popen(PROGRAM, "run", "--report", report_path, "--", "sh", "-c", "exit 3", env=mark, stderr=writing)
    os.close(reading)
    os.close(writing)
    assert job.wait(PATIENCE) == 3
    assert json.loads(report_path.read_text())["exit"]["code"] == 3


def test_mask_dispositions_and_descriptors_are_the_commands(here, mark):
    program = "import signal, os; " \
              "print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGHUP), " \
              "signal.getsignal(signal.SIGCHLD), [signal.getsignal(s) for s in (signal.SIGSEGV, signal.SIGBUS)], " \
              "sorted(os.listdir('/proc/self/fd')))"
    start = "trap '' HUP CHLD; exec \"$@\""
    plain = here.run("sh", "-c", start, "sh", PYTHON, "-c", program, env=mark).stdout
    under = here.run("sh", "-c", start, "sh", PROGRAM, "run", "-q", "--", PYTHON, "-c", program, env=mark).stdout
    assert plain == under and b"set() 1 " in plain  # SIGHUP is ignored


def test_open_files_are_raised_to_the_hard_limit(here, mark):
    show = (PYTHON, "-c", "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))")
    done = here.run("prlimit", "--nofile=100:3000", PROGRAM, "run", "-q", "--", *show, env=mark)
    assert done.stdout == b"3000 3000\n"


def test_library_is_first_in_preload(here, mark):
    library = str(pathlib.Path(PROGRAM).resolve().parent / "libshmguard-preload.so")
    mark["LD_PRELOAD"] = "libdl.so.2"
    mark["ASAN_OPTIONS"] = "verify_asan_link_order=0"  # in case the supervisor was built with ASan
    show = ("sh", "-c", "echo $LD_PRELOAD; echo $SHMGUARD_SOCKET")
    _, out, _ = run_job(here, mark, *show)
    assert re.fullmatch(rf"{re.escape(library)}:libdl.so.2\nshmguard-\d+-[0-9a-f]{{32}}\n", out)
    _, out, _ = run_job(here, mark, PROGRAM, "run", "-q", "--", *show)  # a run within a run loads it only once
    assert out.startswith(f"{library}:libdl.so.2\n")
    # Without the guard the library only observes, and memory is shared as without us.
    _, out, _ = run_job(here, mark, "sh", "-c", "echo $LD_PRELOAD $SHMGUARD_ONLY_WITNESS", options=("--no-guard",))
    assert out == f"{library}:libdl.so.2 1\n"


REFUSE_MEMFD = """
    import ctypes, os, struct, sys
    number = {"x86_64": 319, "aarch64": 279}[os.uname().machine]
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x00050000 | 1), (6, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("HP", len(rules), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
    os.execv(sys.argv[1], sys.argv[1:])
    """


def test_memfd_refused(here, mark, tmp_path):
    """As in a container with a strict seccomp profile: the command runs without the guard."""
    report_path = tmp_path / "report.json"
    done = here.run(sys.executable, script(tmp_path, REFUSE_MEMFD), PROGRAM, "run", "--report", report_path, "--",
                    "sh", "-c", "echo $LD_PRELOAD; exit 5", env=mark)
    assert (done.returncode, done.stdout) == (5, b"\n")
    assert b"running without the guard" in done.stderr and done.stderr.count(b"\n") == 2  # the second line says how it ended
    assert json.loads(report_path.read_text())["guard"]["active"] is False


def test_without_library(here, mark, tmp_path):
    if list(pathlib.Path("/usr/local/lib").glob("**/libshmguard-preload.so")):
        pytest.skip("the library is installed on this machine")
    alone = tmp_path / "shmguard"
    alone.write_bytes(pathlib.Path(PROGRAM).read_bytes())
    alone.chmod(0o755)
    done = here.run(alone, "run", "--", "sh", "-c", "exit 5", env=mark)
    assert done.returncode == 5
    assert b"running without the guard" in done.stderr and done.stderr.count(b"\n") == 2  # the second line says how it ended


# --- Signals ------------------------------------------------------------------------------------------------------

GRACEFUL = """
    import signal, sys, time, torch
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 100000
        def __getitem__(self, index):
            time.sleep(0.01)
            return torch.full((1024,), index)

    if __name__ == "__main__":
        told = []
        signal.signal(getattr(signal, sys.argv[1]), lambda *_: told.append(1))
        for step, batch in enumerate(DataLoader(Slow(), batch_size=4, num_workers=2)):
            if step == 3:
                print("training", flush=True)
            if told:
                time.sleep(1)
                print("checkpoint saved", flush=True)
                sys.exit(7)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1", "SIGINT"])
def test_trainer_saves_its_checkpoint(here, mark, tmp_path, name):
    """A signal to the supervisor reaches the trainer but not its workers: the trainer would fail if they died."""
    job = here.popen(PROGRAM, "run", "-q", "--", PYTHON, script(tmp_path, GRACEFUL), name, env=mark,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"training\n"
        job.send_signal(getattr(signal, name))
        out, err = job.communicate(timeout=PATIENCE)
    finally:
        end_marked(mark)
        job.wait()
    assert (job.returncode, out, err) == (7, b"checkpoint saved\n", b"")


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2])
def test_signals_are_passed_on(here, mark, tmp_path, signo):
    report_path = tmp_path / "report.json"
    job = here.popen(PROGRAM, "run", "-q", "--report", report_path, "--", PYTHON, "-c",
                     "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); "
                     "print('ready', flush=True); time.sleep(3600)",
                     env=mark, stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"ready\n"
    job.send_signal(signo)
    assert job.wait(PATIENCE) == 128 + signo
    job.stdout.close()
    report = json.loads(report_path.read_text())
    assert report["exit"]["signal"] == signo
    if signo == signal.SIGTERM:
        assert report["cause"]["confidence"] >= 0.9


class Terminal:
    """A program with its own terminal and session."""

    def __init__(self, *command, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], list(map(str, command)), env)
        self.seen = b""

    def type(self, text):
        os.write(self.fd, text)

    def expect(self, text, seconds=PATIENCE):
        """Reads until the text has appeared. Returns what came before it, and discards both."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} did not appear, only {self.seen!r}"
            try:
                piece = os.read(self.fd, 4096)
            except OSError as error:  # the other side was closed
                assert error.errno == errno.EIO
                piece = b""
            assert piece, f"{text!r} did not appear, only {self.seen!r}"
            self.seen += piece
        before, _, self.seen = self.seen.partition(text)
        return before

    def wait(self, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if select.select([self.fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.fd, 4096)
        raise AssertionError("it did not end")

    def close(self):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@contextlib.contextmanager
def on_terminal(*command, env):
    terminal = Terminal(*command, env=env)
    try:
        yield terminal
    finally:
        terminal.close()
        end_marked(env)


# Batches of small tensors only; of several large and small ones; with a message too long for one write; and shared by
# the queue's thread.
COUNTED = """
import sys, torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader
way = sys.argv[1]
sizes = {"small": [10], "several": [1 << 18, 1 << 18, 7], "long": [3] * 200}.get(way, [1 << 18])
class Data:
    def __len__(self): return 12
    def __getitem__(self, i): return [torch.ones(size) for size in sizes]
mp.set_sharing_strategy("file_system" if way == "names" else "file_descriptor")
collate = {"collate_fn": lambda samples: torch.cat([part for sample in samples for part in sample])} if way == "feeder" else {}
for epoch in range(2):
    for batch in DataLoader(Data(), batch_size=2, num_workers=2, **collate): print("x", end="", file=sys.stderr)
"""


@pytest.mark.parametrize("lane", ["auto", "off"])
@pytest.mark.parametrize("way", ["small", "several", "long", "feeder", "names"])
def test_batches_are_counted(here, one_python, mark, tmp_path, way, lane):
    done = here.shmguard("run", "--lane", lane, "--report", tmp_path / "r", "--", one_python, *QUIET_PYTHON, "-c", COUNTED, way, env=mark)
    assert done.returncode == 0, done
    assert json.loads((tmp_path / "r").read_text())["guard"]["batches"] == (0 if (way, lane) == ("names", "off") else 12)


@pytest.mark.parametrize("code, command", [
    (2, ["no-such-script.py"]),
    (1, ["-c", "import sys; sys.exit('usage: train.py DATA')"]),
    (3, ["-c", "import sys; sys.exit(3)"]),
])
def test_an_ordinary_exit_code_is_one_line(here, mark, code, command):
    """The program has already said why, so nothing about OOM kills follows."""
    done = here.shmguard("run", "--", PYTHON, *QUIET_PYTHON, *command, env=mark)
    assert done.returncode == code
    lines = [line for line in done.stderr.decode().splitlines() if not line.startswith("shmguard: the guard saw no")]
    assert lines[-1] == f"shmguard: {PYTHON} exited with code {code}." and len(lines) <= 2, lines


LINES = """
import sys, time, torch
torch.zeros(1 << 20).share_memory_()
time.sleep(2.5)
print("a line", flush=True)
time.sleep(2.5)
print("25%|##  |", end="", flush=True)
time.sleep(2.5)
"""


@pytest.mark.timed
def test_the_line_of_progress_keeps_out_of_the_way(mark):
    """It is removed before the job writes, and never drawn over an unfinished line."""
    with on_terminal(PROGRAM, "run", "--", PYTHON, *QUIET_PYTHON, "-c", LINES, env={**mark, "TERM": "xterm"}) as terminal:
        assert b"\rshmguard: " in terminal.expect(b"\r\x1b[Ka line\r\n")
        assert b"\rshmguard: " in terminal.expect(b"\r\x1b[K25%|##  |")
        assert b"\rshmguard: " not in terminal.expect(b"\r\n\x1b[1mshmguard:")
        assert terminal.wait() == 0


# Two bars as tqdm draws them (position=1): a newline, the second bar, and the cursor back up to the first one. They
# begin before there is a tensor. Then the cursor is on the second bar, on an empty line, and at a position on the
# screen.
BARS = """
import os, time
os.write(2, b"\\rfirst bar")
os.write(2, b"\\n\\rsecond bar")
os.write(2, b"\\x1b[A")
import torch
torch.zeros(1 << 20).share_memory_()
time.sleep(2.5)
os.write(2, b"\\rfirst bar is done\\n")
time.sleep(2.5)
os.write(2, b"\\rsecond\\x1b[0m bar is done\\n")
time.sleep(2.5)
os.write(2, b"\\x1b[3;1Hmoved\\n")
time.sleep(2.5)
"""


@pytest.mark.timed
def test_the_line_of_progress_leaves_nested_bars_alone(mark):
    with on_terminal(PROGRAM, "run", "--", PYTHON, *QUIET_PYTHON, "-c", BARS, env={**mark, "TERM": "xterm"}) as terminal:
        assert b"\rshmguard: " not in terminal.expect(b"first bar is done\r\n")
        assert b"\rshmguard: " not in terminal.expect(b"bar is done\r\n")
        assert b"\rshmguard: " in terminal.expect(b"\r\x1b[K\x1b[3;1Hmoved\r\n")
        assert b"\rshmguard: " not in terminal.expect(b"\x1b[1mshmguard:")
        assert terminal.wait() == 0


def test_who_writes_to_a_file_leaves_the_line_alone(mark, tmp_path):
    job = script(tmp_path, f"""
        import os, time, torch
        torch.zeros(1 << 20).share_memory_()
        while not os.path.exists("{tmp_path}/go"):
            time.sleep(0.05)
        print("a line\\n25%|##  |", end="")
        """)
    command = f"exec {PROGRAM} run -- {PYTHON} -W ignore -u {job} > {tmp_path / 'log'}"
    with on_terminal("/bin/sh", "-c", command, env={**mark, "TERM": "xterm"}) as terminal:
        terminal.expect(b"\rshmguard: ")
        (tmp_path / "go").touch()
        assert b"\r\n" not in terminal.expect(b"\x1b[1mshmguard:")
        assert terminal.wait() == 0
    assert (tmp_path / "log").read_bytes() == b"a line\n25%|##  |"


# Room for three batches of 8 MiB, split into `tensors` tensors. Sixteen workers; the trainer takes the batches in turn.
CROWD = """
import sys, time, torch
from torch.utils.data import DataLoader
class Data:
    def __len__(self): return 64
    def __getitem__(self, i): return [torch.full(((1 << 20) // tensors,), i) for _ in range(tensors)]
tensors = int(sys.argv[1])
began = time.monotonic()
for i, batch in enumerate(DataLoader(Data(), num_workers=16, batch_size=1)):
    assert all(int(part[0][0]) == i == int(part[0][-1]) for part in batch)
    if i == 0: began = time.monotonic()
print("seconds", time.monotonic() - began)
"""


@pytest.mark.parametrize("tensors", [1, 4])
@pytest.mark.timed
def test_many_workers_and_little_room(here, python, mark, tmp_path, tensors):
    done = here.shmguard("run", "--budget", "24M", "--report", tmp_path / "r", "--", python, *QUIET_PYTHON, "-c", CROWD, tensors,
                         env=mark, timeout=PATIENCE)
    assert done.returncode == 0, done
    guard = json.loads((tmp_path / "r").read_text())["guard"]
    assert guard["refused"] == 0 and guard["waits"] > 10
    assert guard["bytes_peak"] <= (24 + 2 * 8) << 20  # plus the batch of a rescue, and the one that is just being released
    assert float(done.stdout.split()[-1]) < 60


CACHE = """
import os, sys, torch
for _ in range(3):
    with open(sys.argv[1], "rb") as data:
        while data.read(1 << 20): pass
tensors = [torch.ones(16 << 20, dtype=torch.uint8).share_memory_() for _ in range(8)]
print("fine")
"""


@needs_root
@pytest.mark.timed
def test_the_page_cache_is_memory_that_exists(here, tmp_path, mark):
    """A data set that is read again and again fills the control group with page cache, which the kernel drops for tensors."""
    data = tmp_path / "data"
    with open(data, "wb") as out:
        out.truncate(0)
        for _ in range(500):
            out.write(os.urandom(1 << 10) * 1024)
        out.flush()
        os.fsync(out.fileno())
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with control_group(here, 600 << 20) as (machine, _):
        done = machine.run(PROGRAM, "run", "--wait", "5", "--", PYTHON, *QUIET_PYTHON, "-c", CACHE, data, env=mark)
        assert done.returncode == 0 and done.stdout == b"fine\n", done


def test_control_c(mark):
    command = "import time, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); print('ready'); time.sleep(3600)"
    with on_terminal(PROGRAM, "run", "-q", "--", PYTHON, "-uc", command, env=mark) as terminal:
        terminal.expect(b"ready")
        terminal.type(b"\x03")
        assert terminal.wait() == -signal.SIGINT  # a shell shows 130


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("shell", ["interactive", "script"])
@pytest.mark.timed
def test_control_c_leaves_a_loop(mark, shell, reads):
    """A shell continues its loop unless the command itself died of Ctrl-C."""
    if shell == "script" and reads:
        pytest.skip("only the command has the terminal, so only it gets the Ctrl-C")
    mark["PS1"] = "prompt> "
    command = "printf re; echo ady; " + ("read x" if reads else "exec sleep 3600")
    loop = f"for i in 1 2 3 4; do {PROGRAM} run -q -- bash -c '{command}'; done; echo loop en''ded"
    options = ("-i",) if shell == "interactive" else ("-c", loop)
    with on_terminal("/bin/bash", "--norc", "--noprofile", *options, env=mark) as terminal:
        if shell == "interactive":
            terminal.expect(b"prompt> ")
            terminal.type(f"{loop}\n".encode())
        terminal.expect(b"ready\r\n")
        time.sleep(0.3)
        terminal.type(b"\x03")
        if shell == "script":
            assert terminal.wait() == -signal.SIGINT
            return
        assert b"ready" not in terminal.expect(b"prompt> ")
        terminal.type(b"echo code=$?\n")
        terminal.expect(b"code=130")


def test_control_c_that_is_handled(mark):
    command = "trap 'exit 9' INT; printf re; echo ady; sleep 3600"
    with on_terminal(PROGRAM, "run", "-q", "--", "bash", "-c", command, env=mark) as terminal:
        terminal.expect(b"ready")
        terminal.type(b"\x03")
        assert terminal.wait() == 9


def test_control_c_in_a_training(mark):
    """KeyboardInterrupt in the trainer and in its workers, as without shmguard. No process is left behind."""
    with on_terminal(PROGRAM, "run", "-q", "--", PYTHON, *QUIET_PYTHON, TRAIN, "--hold", "3600", env=mark) as terminal:
        terminal.expect(b"holding")
        terminal.type(b"\x03")
        terminal.expect(b"KeyboardInterrupt")
        assert terminal.wait() == -signal.SIGINT
        assert wait_until(lambda: marked(mark) == [])


def test_command_has_the_terminal(mark):
    with on_terminal(PROGRAM, "run", "-q", "--", "bash", "--norc", "-ic", "read -p 'name? ' x; echo got $x; stty size",
                     env=mark) as terminal:
        terminal.expect(b"name? ")
        terminal.type(b"Ada\n")
        terminal.expect(b"got Ada")
        assert terminal.wait() == 0


def test_terminal_beside_a_redirected_input(mark):
    command = f"{PROGRAM} run -q -- bash -c 'read -p \"name? \" x </dev/tty 2>/dev/tty; echo got $x' </dev/null"
    with on_terminal("/bin/bash", "--norc", "-c", command, env=mark) as terminal:
        terminal.expect(b"name? ")
        terminal.type(b"Ada\n")
        terminal.expect(b"got Ada")
        assert terminal.wait() == 0


def states(pids):
    """The state of each process (R, S, T, …), without those that have ended meanwhile."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found.append(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
    return found


@pytest.mark.timed
def test_pager(mark):
    """The pager that the command is piped into keeps the terminal until the command asks for it."""
    mark["PS1"] = "prompt> "
    with on_terminal("/bin/bash", "--norc", "--noprofile", "-i", env=mark) as terminal:
        terminal.expect(b"prompt> ")
        pager = "read line; stty -echo </dev/tty; read key </dev/tty; stty echo </dev/tty; echo $line and $key; cat"
        terminal.type(f"{PROGRAM} run -q -- sh -c 'echo first; sleep 2; echo la\"\"st' | bash -c '{pager}'\n".encode())
        time.sleep(1)
        terminal.type(b"key\n")
        terminal.expect(b"first and key\r\n")
        assert b"Stopped" not in terminal.expect(b"last\r\n")
        terminal.expect(b"prompt> ")
        terminal.type(f"{PROGRAM} run -q -- sh -c 'printf re; echo ady; sleep 3600' | cat\n".encode())
        terminal.expect(b"ready\r\n")
        time.sleep(0.5)  # until the shell has started sleep: while it does, it cannot be stopped
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt> ")
        assert wait_until(lambda: set(states(children(terminal.pid))) == {"T"})
        terminal.type(b"fg\n")
        terminal.expect(b"| cat\r\n")
        assert wait_until(lambda: "T" not in states(children(terminal.pid)))
        terminal.type(b"\x03")
        terminal.expect(b"prompt> ")
        assert wait_until(lambda: len(marked(mark)) == 1)


@pytest.mark.timed
def test_job_control(mark):
    mark["PS1"] = "prompt> "
    with on_terminal("/bin/bash", "--norc", "--noprofile", "-i", env=mark) as terminal:
        terminal.expect(b"prompt> ")
        terminal.type(f"{PROGRAM} run -q -- sh -c 'printf re; echo ady; exec cat' | cat\n".encode())
        terminal.expect(b"ready\r\n")
        terminal.type(b"one\n")
        terminal.expect(b"one\r\none\r\n")
        terminal.type(b"\x1a")
        terminal.expect(b"Stopped")
        terminal.expect(b"prompt> ")
        assert wait_until(lambda: set(states(children(terminal.pid))) == {"T"})
        terminal.type(b"fg\n")
        terminal.expect(b"| cat\r\n")
        assert wait_until(lambda: "T" not in states(children(terminal.pid)))
        terminal.type(b"two\n")
        terminal.expect(b"two\r\ntwo\r\n")
        terminal.type(b"\x04")
        terminal.expect(b"prompt> ")
        terminal.type(b"echo code=$?\n")
        terminal.expect(b"code=0")
        terminal.type(b"exit\n")
        assert terminal.wait() == 0


@pytest.mark.timed
def test_brought_to_the_foreground(mark):
    mark["PS1"] = "prompt> "
    with on_terminal("/bin/bash", "--norc", "--noprofile", "-i", env=mark) as terminal:
        terminal.expect(b"prompt> ")
        for command, state in [("cat", b"Stopped"), ("sh -c 'sleep 2; exec cat'", b"prompt> ")]:
            terminal.type(f"{PROGRAM} run -q -- {command} &\n".encode())
            terminal.expect(b"prompt> ")
            if state == b"Stopped":
                assert wait_until(lambda: "T" in states(children(terminal.pid)))
            time.sleep(0.5)
            terminal.type(b"\n")  # the shell reports its jobs before it prompts
            terminal.expect(state)
            terminal.type(b"fg\n")
            terminal.expect(b"fg\r\n")
            time.sleep(0.5)
            terminal.type(b"read this\n")
            terminal.expect(b"read this\r\nread this\r\n")
            terminal.type(b"\x04")
            terminal.expect(b"prompt> ")
        terminal.type(b"exit\n")
        assert terminal.wait() == 0


# --- Nothing is left behind ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("stray, most", [
    ("setsid sleep 1.5", 3),  # exits by itself
    ("setsid sleep 3600", 5),
    ("setsid sh -c \"trap '' TERM; while :; do sleep 1; done\"", 8),
    ("setsid sh -c 'sh -c \"sleep 3600 & sleep 3600\" & sleep 3600'", 8),  # strays with children
    (f"{PYTHON} -c 'import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid()\n"
     "for i in range(30):\n if os.fork(): signal.pause()\nsignal.pause()'", 8),  # each is the child of the one before
])
@pytest.mark.timed
def test_strays(here, mark, stray, most):
    began = time.monotonic()
    job, _, err = run_job(here, mark, "sh", "-c", f"{stray} & exit 4")
    assert job.returncode == 4
    assert time.monotonic() - began < most + 20  # allows for a busy machine, but not for waiting out the sixty seconds
    assert marked(mark) == []
    assert ("had left running" in err) == (most > 3)


@pytest.mark.timed
def test_children_from_before(here, mark):
    """Children that a shell had before it turned into shmguard do not belong to the command."""
    done = here.run("bash", "-c", 'sleep 3600 >/dev/null 2>&1 & echo $!; exec "$@"', "bash", PROGRAM, "run", "-q", "--",
                    "sh", "-c", "setsid sleep 0.5 >/dev/null & exit 4", env=mark)
    other = int(done.stdout)
    try:
        assert done.returncode == 4
        assert marked(mark) == [other]
    finally:
        end_marked(mark)


TOLD = """
    import os, signal, subprocess, sys, time
    def note(who):
        with open(f"{sys.argv[1]}.{who}", "w") as file:
            file.write(str(time.monotonic()))
    def told(*_):
        if os.getpid() == trainer:
            time.sleep(1.5)  # saves a checkpoint
        note("trainer" if os.getpid() == trainer else "worker")
        os._exit(7)
    trainer = os.getpid()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, name), told)
    if os.fork() == 0:
        os.setsid()
    else:
        print("ready", flush=True)
    time.sleep(3600)
    """


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.timed
def test_workers_are_told_when_the_trainer_has_ended(here, mark, tmp_path, signo):
    """Not earlier, because the trainer needs them, and not seconds later."""
    job = here.popen(PROGRAM, "run", "-q", "--", PYTHON, script(tmp_path, TOLD), tmp_path / "ended", env=mark,
                     stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        time.sleep(0.3)  # the worker has made its own session
        job.send_signal(signo)
        assert job.wait(PATIENCE) == 7
        over = time.monotonic()
    finally:
        end_marked(mark)
        job.wait()
        job.stdout.close()
    trainer, worker = (float((tmp_path / f"ended.{who}").read_text()) for who in ("trainer", "worker"))
    assert trainer < worker < trainer + 2 and over < trainer + 2.5


@pytest.mark.timed
def test_a_signal_that_the_command_ignores_ends_nobody(here, mark, tmp_path):
    """As under nohup: what it leaves behind gets the usual three seconds."""
    done = tmp_path / "done"
    leave = f"trap '' HUP; (sleep 3; echo done > {done}) & echo ready; sleep 1.2"
    job = here.popen(PROGRAM, "run", "-q", "--", "sh", "-c", leave, env=mark, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        job.send_signal(signal.SIGHUP)
        assert job.wait(PATIENCE) == 0 and done.exists()
    finally:
        end_marked(mark)
        job.wait()
        job.stdout.close()


BACKGROUND = """
    import sys, time
    began = time.monotonic()
    while time.monotonic() < began + 60:
        sum(range(10000)) if sys.argv[1] == "works" else time.sleep(1)
    """


@pytest.mark.parametrize("what, quiet, returned, code", [("works", False, 0, 1), ("works", True, 0, 1), ("works", False, 4, 4),
                                                         ("waits", False, 0, 0)])
@pytest.mark.timed
def test_a_command_that_leaves_its_work_behind(here, mark, tmp_path, what, quiet, returned, code):
    """A script that returned while its training was still running in the background did not finish it. The user must be told."""
    report_path = tmp_path / "report.json"
    path = script(tmp_path, BACKGROUND)
    job, _, err = run_job(here, mark, "sh", "-c", f"nohup {PYTHON} {path} {what} >/dev/null 2>&1 & sleep 0.5; exit {returned}",
                          options=("--report", report_path, *(("-q",) if quiet else ())))
    assert job.returncode == code, err
    report = json.loads(report_path.read_text())
    assert report["exit"]["code"] == returned and report["strays_ended"] == 1
    lost = what == "works" and returned == 0
    assert (report["ended_at_work"] is not None) == lost
    words = " ".join(err.split())
    assert ('put "wait" on its last line' in words) == lost
    if lost:
        assert f"({PYTHON} {path} works)" in words and report["ended_at_work"]["command"] == f"{PYTHON} {path} works"
        assert report["ended_at_work"]["processes"] == 1 and report["ended_at_work"]["cpu_seconds"] > 0
        assert str(report["ended_at_work"]["pid"]) in err
    assert marked(mark) == []


@pytest.mark.timed
def test_a_trainer_that_leaves_busy_workers_has_finished(here, mark, tmp_path):
    """Many trainers end with os._exit. Their workers keep filling queues that no one reads, and ending them loses no work."""
    job, out, err = run_job(here, mark, PYTHON, *QUIET_PYTHON, script(tmp_path, """
        import os, time, torch
        from torch.utils.data import DataLoader

        class Busy:
            def __len__(self):
                return 1 << 20
            def __getitem__(self, index):
                began = time.monotonic()
                while time.monotonic() < began + 0.2:
                    pass
                return torch.zeros(4)

        for step, _ in enumerate(DataLoader(Busy(), num_workers=2, prefetch_factor=1000)):
            if step == 12:
                print("finished", flush=True)
                os._exit(0)
        """))
    assert (job.returncode, out) == (0, "finished\n"), err
    assert marked(mark) == []


@needs_root
@cells("version, guard", [("system", "guard"), ("2.13", "guard"), ("system", "no-guard")], PYTHONS, ("guard", "no-guard"))
@pytest.mark.timed
def test_the_manager_does_not_keep_us(private_shm, mark, tmp_path, version, guard):
    """torch_shm_manager waits two seconds for more clients. When all of them are gone, it cleans up at once."""
    mark["TMPDIR"] = str(tmp_path)
    options = ("-q", "--no-guard") if guard == "no-guard" else ("-q",)
    waits = []
    while min(waits, default=9) >= 1.5 and len(waits) < 3:  # a busy machine may delay some of them
        job, out, err = run_job(private_shm, mark, python_of(version), *QUIET_PYTHON, "-c", """if True:
            import os, time, torch
            torch.multiprocessing.set_sharing_strategy("file_system")
            tensor = torch.ones(1 << 20).share_memory_()
            assert [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("torch-shm-dir-")]
            print(time.monotonic(), flush=True)
            os._exit(0)  # its names are left to the manager
            """, options=options)
        waits.append(time.monotonic() - float(out))
        assert job.returncode == 0, err
        assert list(tmp_path.glob("torch-shm-dir-*")) == []
        nothing_left(private_shm, mark, job.pid)
    assert min(waits) < 1.5, waits


@cells("version, strategy, guard",
       [("system", "file_descriptor", "guard"), ("system", "file_system", "guard"), ("2.13", "file_system", "guard"),
        ("system", "file_system", "no-guard")],
       PYTHONS, STRATEGIES, ("guard", "no-guard"))
@needs_root
def test_killed_trainer(private_shm, mark, version, strategy, guard):
    """What is left when the trainer is killed: workers, torch_shm_manager, names, segments. Files in /dev/shm itself are
    removed by the manager, once all other processes are gone."""
    options = ("--no-guard",) if guard == "no-guard" else ()
    with control_group(private_shm) as (machine, group):
        job = machine.popen(PROGRAM, "run", *options, "--", python_of(version), *QUIET_PYTHON, TRAIN, *BATCH, "--hold", "3600",
                            "--strategy", strategy, env=mark, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            assert job.stdout.readline() == b"holding\n"
            assert not group or shmem(group) > 64 << 20
            trainer = children(job.pid)[0]
            os.kill(trainer, signal.SIGKILL)
            job.communicate(timeout=PATIENCE)
        finally:
            end_marked(mark)
        assert job.returncode == 137
        nothing_left(private_shm, mark, job.pid, group)


@contextlib.contextmanager
def job_under_way(machine, environment, tmp_path, *command):
    """A job whose workers are busy, and a function that waits for the command to end and returns its exit code and output."""
    code = tmp_path / "code"
    job = machine.popen(PROGRAM, "run", "-q", "--", "sh", "-c", 'code=$1; shift; "$@"; echo $? >"$code"', "sh", code, *command,
                        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end():
        assert wait_until(lambda: code.exists() and code.read_text().endswith("\n")), "the training hangs"
        out, err = job.communicate(timeout=PATIENCE)  # the pipes are closed once every process that held them is gone
        return int(code.read_text()), out, err

    try:
        assert wait_until(lambda: len(children(job.pid)) >= 4)
        time.sleep(1)
        yield job, end
    finally:
        end_marked(environment)
        job.wait()


def without_sanitizer(environment):
    """A sanitizer's own handlers would end the supervisor when it crashes."""
    environment["ASAN_OPTIONS"] = "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"
    return environment


@cells("version, strategy", [("2.13", "file_descriptor"), ("system", "file_system")], PYTHONS, STRATEGIES)
@needs_root
def test_crashed_supervisor(private_shm, mark, tmp_path, version, strategy):
    """The training continues, or ends with an exception. It must not hang, abort or read wrong bytes."""
    with job_under_way(private_shm, without_sanitizer(mark), tmp_path, python_of(version), *QUIET_PYTHON, "-u", TRAIN, *BATCH,
                       "--steps", "30", "--strategy", strategy) as (job, end):
        job.send_signal(signal.SIGSEGV)
        code, out, err = end()
        assert job.returncode == 0  # the exit code of the command
        assert b"shmguard: internal error (SIGSEGV); the command goes on without the guard\n" in err
        if strategy == "file_descriptor":
            assert (code, b"finished 30 steps" in out) == (0, True), err
        else:
            assert (code, b"finished 30 steps" in out, b"RuntimeError" in err) in [(0, True, False), (1, False, True)], err
        assert b"corrupt" not in err
        assert wait_until(lambda: marked(mark) == [])
        assert not [name for name in shm_files(private_shm) if name.startswith("torch_")]


@pytest.mark.parametrize("command, signo", [("run", signal.SIGBUS), ("run", signal.SIGABRT), ("run", signal.SIGFPE),
                                            ("run", signal.SIGILL), ("record", signal.SIGSEGV)])
def test_what_is_left_of_a_crash(here, mark, tmp_path, command, signo):
    """A crashed supervisor still waits for the command, passes signals on, and exits with the command's code."""
    options = ("-q",) if command == "run" else ("-q", "-o", tmp_path / "run.db")
    job = here.popen(PROGRAM, command, *options, "--", PYTHON, "-uc", "import signal, sys, time\n"
                     "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); print('ready')\n"
                     "sys.stdin.readline(); print('read'); time.sleep(3600)",
                     env=without_sanitizer(mark), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        job.send_signal(signo)
        assert signo.name.encode() in job.stderr.readline()
        job.stdin.write(b"\n")
        job.stdin.flush()
        assert job.stdout.readline() == b"read\n"
        assert wait_until(lambda: not any(map(is_sentinel, below(job.pid))))
        job.send_signal(signal.SIGTERM)
        out, err = job.communicate(timeout=PATIENCE)
    finally:
        end_marked(mark)
        job.wait()
    assert (job.returncode, out, err) == (9, b"", b"")


def test_a_crash_ends_what_is_measured(here, mark):
    """No one would end the command in time, or read its output."""
    job = here.popen(PROGRAM, "plan", "--measure", "--for", "50s", "--", "sh", "-c", STEPS_OUT, env=without_sanitizer(mark),
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert wait_until(lambda: len(sleepers(mark)) >= 2)
        job.send_signal(signal.SIGSEGV)
        job.communicate(timeout=PATIENCE)
        assert job.returncode == -signal.SIGSEGV
        assert wait_until(lambda: marked(mark) == [])
    finally:
        end_marked(mark)
        job.wait()


def below(pid):
    """Its children, including the sentinel."""
    with contextlib.suppress(OSError):
        return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return []


def living(pids):
    return [pid for pid in pids if states([pid]) not in ([], ["Z"], ["X"])]


@cells("version, method, strategy",
       [("system", "fork", "file_descriptor"), ("2.13", "fork", "file_system"), ("system", "spawn", "file_system"),
        ("2.13", "forkserver", "file_descriptor")],
       PYTHONS, ("fork", "spawn", "forkserver"), STRATEGIES, slow=lambda _, method, __: method != "fork")
@needs_root
def test_killed_supervisor(private_shm, mark, tmp_path, version, method, strategy):
    """The job ends with its supervisor, as if it had been killed itself, and leaves nothing behind."""
    mark["TMPDIR"] = str(tmp_path)
    job = private_shm.popen(PROGRAM, "run", "-q", "--", python_of(version), *QUIET_PYTHON, TRAIN, *BATCH, "--hold", "3600",
                            "--strategy", strategy, "--start-method", method, env=mark, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"holding\n"
        everybody = [*children(job.pid), *below(job.pid)]
        job.kill()
        job.communicate(timeout=PATIENCE)  # no process holds the pipes any more
        assert wait_until(lambda: living(everybody) == []), [pathlib.Path(f"/proc/{pid}/cmdline").read_text() for pid in
                                                                 living(everybody)]
    finally:
        end_marked(mark)
        job.wait()
    assert marked(mark) == []
    assert shm_files(private_shm) == []
    assert list(tmp_path.glob("torch-shm-dir-*")) == []


STEPS_OUT = f"{PYTHON} -c 'import os, time; os.setsid(); time.sleep(3600)' & exec sleep 3600"  # as torchrun's ranks do


@pytest.mark.parametrize("how", ["kill", "timeout", "between attempts", "nested", "record", "tune", "plan"])
def test_a_kill_ends_everything(here, mark, tmp_path, how):
    """Whatever process group or session they are in, and however we were started."""
    arguments = {"record": ("record", "-q", "-o", tmp_path / "run.db", "--", "sh", "-c", "exec sleep 3600"),
                 "tune": ("tune", "--vary", "W=1,2", "--rate", "rate ([0-9]+)", "--", "sh", "-c", STEPS_OUT, "{W}"),
                 "plan": ("plan", "--measure", "--for", "50s", "--", "sh", "-c", STEPS_OUT),
                 "nested": ("run", "-q", "--", PROGRAM, "run", "-q", "--", "sh", "-c", STEPS_OUT),
                 "between attempts": ("run", "-q", "--retry", "3", "--resume", "again", "--", "sh", "-c",
                                      f"[ $SHMGUARD_ATTEMPT = 2 ] || exit 3; {STEPS_OUT}")}
    prefix = ("timeout", "--signal=KILL", "60") if how == "timeout" else ()
    mark["ASAN_OPTIONS"] = "verify_asan_link_order=0"  # in case the supervisor was built with ASan and runs within another one
    job = here.popen(*prefix, PROGRAM, *arguments.get(how, ("run", "-q", "--", "sh", "-c", STEPS_OUT)), env=mark,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        enough = 1 if how == "record" else 2
        assert wait_until(lambda: len(sleepers(mark)) >= enough)
        # On a busy machine the command may be there before its sentinel has its name.
        assert wait_until(lambda: len(sentinels_below(job.pid)) == (2 if how == "nested" else 1))
        everybody = [job.pid, *children(job.pid)]
        sentinels = sentinels_below(job.pid)
        if how == "timeout":  # timeout signals its whole process group
            os.killpg(job.pid, signal.SIGKILL)
        else:
            job.kill()
        assert wait_until(lambda: living([*everybody, *sentinels]) == [] and marked(mark) == [])
        job.communicate(timeout=PATIENCE)
    finally:
        end_marked(mark)
        job.wait()


def sentinels_below(pid):
    return [child for parent in [pid, *children(pid)] for child in below(parent) if is_sentinel(child)]


def sleepers(environment):
    found = []
    for pid in marked(environment):
        with contextlib.suppress(OSError):
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            found += [pid] if command.startswith(b"sleep\0") or b"os.setsid" in command and b"sh\0" not in command else []
    return found


def test_the_sentinel_is_not_in_the_way(here, mark, tmp_path):
    """It is counted nowhere, holds no pipes, and ends with the run."""
    report_path = tmp_path / "report.json"
    job = here.popen(PROGRAM, "run", "-q", "--report", report_path, "--record", tmp_path / "run.db", "--", "sleep", "2.5",
                     env=mark, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: any(map(is_sentinel, below(job.pid))))
    sentinel = next(filter(is_sentinel, below(job.pid)))
    assert wait_until(lambda: b"shmguard" not in pathlib.Path(f"/proc/{sentinel}/cmdline").read_bytes())
    assert pathlib.Path(f"/proc/{sentinel}/environ").read_bytes().strip(b"\0") == b""
    assert len(os.listdir(f"/proc/{sentinel}/fd")) == 1
    assert os.getsid(sentinel) == sentinel
    processes = here.json("ps")["processes"]
    assert sentinel not in [process["pid"] for process in processes]
    assert job.wait(PATIENCE) == 0
    assert living([sentinel]) == []
    job.stdout.close()
    report = json.loads(report_path.read_text())
    assert report["peaks"]["processes"] == 1
    assert len(report["processes"]) == 1
    recorded = here.json("report", tmp_path / "run.db")["processes"]
    assert sentinel not in [process["pid"] for process in recorded]


STOPPED_SECONDS = 6

BY_NAME = """
    import os, signal, subprocess, sys, time, torch
    import torch.multiprocessing as mp

    def produce(queue, go):
        mp.set_sharing_strategy("file_system")
        for i in range(4):
            queue.put([torch.full((size,), i) for size in (100, 1 << 18)])
            go.acquire()

    if __name__ == "__main__":
        mp.set_sharing_strategy("file_system")
        queue, go = mp.Queue(), mp.Semaphore(0)
        producer = mp.Process(target=produce, args=(queue, go), daemon=True)
        producer.start()
        kept = [queue.get()]
        supervisor = int(os.environ["SUPERVISOR"])
        if sys.argv[1] == "stop":
            os.kill(supervisor, signal.SIGSTOP)
            subprocess.Popen(["sh", "-c", f"sleep {sys.argv[2]}; kill -CONT {supervisor}"])
        else:
            os.kill(supervisor, signal.SIGSEGV)
            time.sleep(0.5)
        for i in range(3):
            go.release()
            kept.append(queue.get())
        for i, tensors in enumerate(kept):
            assert all(bool((tensor == i).all()) for tensor in tensors), i
        del kept, tensors  # unlinks all of their names
        go.release()
        producer.join()
        print("went on", producer.exitcode)
    """


def by_name(machine, mark, tmp_path, python, what):
    return run_job(machine, mark, "sh", "-c", 'export SUPERVISOR=$PPID; "$@"; echo code $?', "sh", python, *QUIET_PYTHON,
                   script(tmp_path, BY_NAME), what, STOPPED_SECONDS, options=("-q",))


@needs_root
@pytest.mark.timed
def test_stopped_supervisor(private_shm, one_python, mark, tmp_path):
    """Processes that need the supervisor wait however long it is stopped, and continue when it does."""
    began = time.monotonic()
    job, out, err = by_name(private_shm, mark, tmp_path, one_python, "stop")
    assert (job.returncode, out) == (0, "went on 0\ncode 0\n"), err
    assert time.monotonic() - began > STOPPED_SECONDS
    nothing_left(private_shm, mark, job.pid)


@needs_root
def test_names_of_a_crashed_supervisor(private_shm, python, mark, tmp_path):
    """Unlinking a name that was lost with the supervisor is not an error, and new names are real files."""
    job, out, err = by_name(private_shm, without_sanitizer(mark), tmp_path, python, "crash")
    assert (job.returncode, out) == (0, "went on 0\ncode 0\n"), err
    assert wait_until(lambda: marked(mark) == [])  # torch_shm_manager ends a little later
    assert shm_files(private_shm) == []


@needs_root
def test_few_descriptors(private_shm, one_python, mark, tmp_path):
    """There are more names than the supervisor may have descriptors. The rest are files, and all tensors arrive intact."""
    path = script(tmp_path, """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Lists(Dataset):
            def __len__(self):
                return 60
            def __getitem__(self, index):
                return [torch.full((100,), index) for _ in range(40)]

        def by_name(_=0):
            torch.multiprocessing.set_sharing_strategy("file_system")

        def same(items):
            return items[0]

        if __name__ == "__main__":
            by_name()
            torch.ones(1).share_memory_()  # starts the manager; otherwise each worker would start its own, which takes long
            for epoch in range(2):
                kept = list(DataLoader(Lists(), num_workers=2, collate_fn=same, worker_init_fn=by_name))
                for index, tensors in enumerate(kept):
                    assert all(bool((tensor == index).all()) for tensor in tensors), index
            print("all whole")
        """)
    limited = private_shm.within("prlimit", "--nofile=1024:1024")
    plain = limited.run(one_python, *QUIET_PYTHON, path, env=mark)
    assert (plain.returncode, plain.stdout) == (0, b"all whole\n"), plain.stderr
    report_path = tmp_path / "report.json"
    job, out, err = run_job(limited, mark, one_python, *QUIET_PYTHON, path, options=("--lane", "off", "--report", report_path))
    assert (job.returncode, out) == (0, "all whole\n"), err
    guard = json.loads(report_path.read_text())["guard"]
    assert guard["fallbacks"] > 1000 and guard["names_served"] > 1000
    nothing_left(private_shm, mark, job.pid)


@needs_root
def test_closed_connection(private_shm, mark, tmp_path):
    """A program that closes all of its descriptors loses its connection to the supervisor, and gets a new one."""
    job, out, err = run_job(private_shm, mark, PYTHON, *QUIET_PYTHON, script(tmp_path, """
        import os
        from _posixshmem import shm_open, shm_unlink

        for i in range(3):
            os.write(shm_open("/psm_x", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), b"%d" % i)
            os.closerange(3, 1000)
            assert os.read(shm_open("/psm_x", os.O_RDWR), 5) == b"%d" % i and not os.path.exists("/dev/shm/psm_x")
            shm_unlink("/psm_x")
        print("all there")
        """), options=("-q",))
    assert (job.returncode, out) == (0, "all there\n"), err


@cells("version, method", [("system", "spawn"), ("2.13", "fork")], PYTHONS, ("fork", "spawn"))
@needs_root
def test_killed_producer(private_shm, mark, tmp_path, version, method):
    """Tensors shared by name can be opened after their producer was killed, and are gone when the job ends."""
    job, out, err = run_job(private_shm, mark, python_of(version), *QUIET_PYTHON, script(tmp_path, """
        import os, signal, sys, time, torch
        import torch.multiprocessing as mp

        def produce(queue):
            mp.set_sharing_strategy("file_system")
            for i in range(6):
                queue.put(torch.full((1 << (10 + 4 * (i % 3)),), i, dtype=torch.int64))
            time.sleep(3600)

        if __name__ == "__main__":
            mp.set_sharing_strategy("file_system")
            context = mp.get_context(sys.argv[1])
            queue = context.Queue()
            maker = context.Process(target=produce, args=(queue,))
            maker.start()
            first = queue.get()
            time.sleep(1)
            os.kill(maker.pid, signal.SIGKILL)
            maker.join()
            rest = [queue.get() for _ in range(5)]
            for i, tensor in enumerate([first, *rest]):
                assert bool((tensor == i).all()), i
            print("all whole", flush=True)
            os._exit(0)  # Python 3.13 would wait at its end for the manager that the maker has left
        """), method)
    assert (job.returncode, out) == (0, "all whole\n"), err
    nothing_left(private_shm, mark, job.pid)


@needs_root
@cells("version, kind", [("2.13", "gone"), ("system", "idle")], PYTHONS, ("gone", "idle"))
@pytest.mark.timed
def test_memory_comes_back(private_shm, mark, tmp_path, version, kind):
    """Memory is released while the trainer sleeps: after its loader is gone, or while workers wait for the next epoch."""
    job = private_shm.popen(PROGRAM, "run", "-q", "--", python_of(version), *QUIET_PYTHON, script(tmp_path, """
        import sys, time, torch
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, index):
                return torch.full((32 << 20,), index, dtype=torch.uint8)

        if __name__ == "__main__":
            idle = sys.argv[1] == "idle"
            loader = DataLoader(Images(), batch_size=None, num_workers=2, persistent_workers=idle)
            for epoch in range(2):
                for index, image in enumerate(loader):
                    assert bool((image == index).all())
                    if epoch == 0 and index == 5:
                        print("half", flush=True)
                        sys.stdin.readline()
                del image
                print("idle", flush=True)
                sys.stdin.readline()
        """), kind, env=mark, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def held():
        segments = private_shm.json("ps")["segments"]
        return sum(s["allocated"] for s in segments if s["kind"] == "shmguard" and job.pid in s["holders"])

    try:
        assert job.stdout.readline() == b"half\n"
        assert held() >= 32 << 20
        job.stdin.write(b"\n")
        job.stdin.flush()
        assert job.stdout.readline() == b"idle\n"
        assert wait_until(lambda: held() < 1 << 20)
        job.stdin.write(b"\n")  # it continues where it stopped, with every byte right
        job.stdin.flush()
        assert job.stdout.readline() == b"idle\n"
        job.stdin.close()
        assert job.wait(PATIENCE) == 0
    finally:
        end_marked(mark)
        job.wait()
        job.stdout.close()
    nothing_left(private_shm, mark, job.pid)


# --- Python's own shared memory -----------------------------------------------------------------------------------

SHARED_MEMORY = """
    import os, subprocess, sys
    from multiprocessing.shared_memory import SharedMemory

    def error_of(call, *arguments, **named):
        try:
            call(*arguments, **named)
        except OSError as error:
            return type(error).__name__, error.errno
        return None

    attach = "import sys; from multiprocessing.shared_memory import SharedMemory; " \\
             "m = SharedMemory(sys.argv[1]); assert bytes(m.buf[:4]) == b'here'; m.buf[4] = 33; print(m.size); m.close()"
    block = SharedMemory(create=True, size=5000)
    block.buf[:4] = b"here"
    print(block.size, os.fstat(block._fd).st_size)
    # Another process, which did not inherit it; its resource tracker would unlink the name when it ends.
    attach = "from multiprocessing import resource_tracker; resource_tracker.register = lambda *_: None; " + attach
    print(subprocess.run([sys.executable, "-c", attach, block.name], capture_output=True, text=True))
    print(block.buf[4])
    print(error_of(SharedMemory, block.name, create=True, size=1))
    again = SharedMemory(block.name)
    block.unlink()
    again.buf[5] = 7
    print(block.buf[5], error_of(SharedMemory, block.name), error_of(block.unlink))
    large = SharedMemory(create=True, size=96 << 20) if sys.argv[1] == "large" else again
    large.buf[-1] = 1
    for name in ["psm_x/y", "psm_no_such"]:
        print(name, error_of(SharedMemory, name))
    with open("/dev/shm/psm_file", "w") as file:
        file.write("outside")
    outside = SharedMemory("psm_file")
    print(error_of(SharedMemory, "psm_file", create=True, size=1), bytes(outside.buf))
    outside.unlink()
    for memory in outside, again, block:
        memory.close()
    if large is not again:
        large.close(); large.unlink()
    """


@needs_root
def test_shared_memory(small_shm, mark, tmp_path):
    path = script(tmp_path, SHARED_MEMORY)
    plain = small_shm.run(PYTHON, path, "small", env=mark)
    job, out, err = run_job(small_shm, mark, PYTHON, path, "small", options=("-q",))
    anonymous = re.compile(r"psm_[0-9a-f]+")
    assert (plain.returncode, job.returncode) == (0, 0), (plain.stderr, err)
    assert anonymous.sub("psm", out) == anonymous.sub("psm", plain.stdout.decode())
    job, _, err = run_job(small_shm, mark, PYTHON, path, "large", options=("-q",))
    assert job.returncode == 0, err
    nothing_left(small_shm, mark, job.pid)


# What shm_open(3), flock(2) and lseek(2) specify. The output must be the same as without the guard.
POSIX = """
    import errno, fcntl, os
    from _posixshmem import shm_open, shm_unlink

    def attempt(call, *arguments):
        try:
            return call(*arguments)
        except OSError as error:
            return errno.errorcode[error.errno]

    def show(text):
        print(text, eval(text))

    new = os.O_CREAT | os.O_EXCL
    one = shm_open("/psm_a", os.O_RDWR | new, 0o600)
    os.write(one, b"0123456789")
    two = shm_open("psm_a", os.O_RDWR, 0o600)
    show("os.read(two, 4), os.lseek(one, 0, 1), os.lseek(two, 0, 1)")
    show("os.get_inheritable(two), os.path.sameopenfile(one, two)")
    show("attempt(fcntl.flock, one, fcntl.LOCK_EX | fcntl.LOCK_NB)")
    show("attempt(fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)")
    os.close(one)
    show("attempt(fcntl.flock, two, fcntl.LOCK_EX | fcntl.LOCK_NB)")
    only = shm_open("//psm_a", os.O_RDONLY)
    show("os.read(only, 20), attempt(os.write, only, b'x'), attempt(os.ftruncate, only, 0)")
    for name in "/psm_a", "psm_a", "//psm_a":
        show(f"attempt(shm_open, {name!r}, os.O_RDWR | new, 0o600)")
    same = shm_open("/psm_a", os.O_RDWR | os.O_CREAT, 0o600)
    show("os.read(same, 20)")
    cut = shm_open("/psm_a", os.O_RDWR | os.O_TRUNC, 0o600)
    show("os.fstat(cut).st_size, os.fstat(two).st_size")
    made = shm_open("/psm_b", os.O_RDWR | os.O_CREAT, 0o600)
    show("os.fstat(made).st_size, attempt(shm_open, 'psm_b', os.O_RDWR | new, 0o600)")
    for name in "", "/", "/psm_/x", "psm_x/", "/psm_" + "x" * 250, "/psm_" + "x" * 251, "/psm_none", "psm_none":
        show(f"attempt(shm_unlink, {name!r}), attempt(shm_open, {name!r}, os.O_RDWR)")
    show("attempt(shm_unlink, 'psm_a'), attempt(shm_unlink, '/psm_a'), attempt(shm_open, '/psm_a', os.O_RDONLY)")
    show("attempt(shm_unlink, '/psm_b'), os.fstat(two).st_size")
    """


@needs_root
def test_posix(small_shm, mark, tmp_path):
    path = script(tmp_path, POSIX)
    plain = small_shm.run(PYTHON, path, env=mark)
    job, out, err = run_job(small_shm, mark, PYTHON, path, options=("-q",))
    assert (plain.returncode, job.returncode) == (0, 0), (plain.stderr, err)
    assert out == plain.stdout.decode()
    nothing_left(small_shm, mark, job.pid)


def verdicts(text):
    return re.findall(r"^(test\w+ \(\S+\)).*?\.\.\. (\w+)", text, re.M | re.S)


@needs_root
def test_shared_memory_tests_of_python(small_shm, mark):
    if subprocess.run([PYTHON, "-c", "import test._test_multiprocessing"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("Python's own tests are not installed (scripts/need test)")
    command = (PYTHON, "-m", "test", "-v", "test_multiprocessing_fork", "test_multiprocessing_spawn", "-m",
               "*SharedMemory*", "-m", "*ShareableList*")
    plain = small_shm.run(*command, env=mark)
    job, out, err = run_job(small_shm, mark, *command, options=("-q",))
    expected = verdicts(plain.stdout.decode() + plain.stderr.decode())
    assert len(expected) >= 20
    assert sorted(verdicts(out + err)) == sorted(expected)
    assert plain.returncode == job.returncode
    nothing_left(small_shm, mark, job.pid)


# --- Launchers ----------------------------------------------------------------------------------------------------


@needs_root
@cells("version, launcher", [("system", "script"), ("2.13", "module"), ("system", "torchrun"), ("2.13", "torchrun")], PYTHONS,
       ("script", "module", "torchrun"), slow=lambda _, launcher: launcher == "torchrun")
def test_launchers(small_shm, mark, tmp_path, version, launcher):
    python = python_of(version)
    options = (*map(str, BATCH), "--steps", "10", "--workers", "2")
    if launcher == "script":
        command = [script(tmp_path, f"""\
            #!/bin/bash
            set -e
            cd {tmp_path}
            ({python} -W ignore {TRAIN} {' '.join(options)} | tee log) && wait
            """, "job.sh")]
        command[0].chmod(0o755)
    elif launcher == "module":
        mark["PYTHONPATH"] = str(TRAIN.parent)
        command = [python, "-W", "ignore", "-m", "train", *options]
    else:
        skip_without_torchrun(python)
        # Under Python 3.11, the launcher of 1.13 fails unless it is told where the ranks' errors go.
        command = [python, "-W", "ignore", "-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={free_port()}",
                   "--redirects=2", "--tee=2", f"--log_dir={tmp_path}", TRAIN, *options]
    job, out, err = run_job(small_shm, mark, *command)
    assert job.returncode == 0, err
    assert out.count("finished 10 steps") == (2 if launcher == "torchrun" else 1)
    nothing_left(small_shm, mark, job.pid)
