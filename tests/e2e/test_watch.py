# SPDX-License-Identifier: Apache-2.0
"""shmguard watch on real terminals (tmux) of several sizes, with real PyTorch; and --once, --replay and bad input."""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import HERE, PATIENCE, PROGRAM, PYTHONS, TRAIN, children, end_tree, has_ended, needs_root, scratch_directory, wait_until
from test_bad_input import refused
from test_terminal import CODES, on_terminal, width

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")


class Screen:
    """A command on its own terminal. The shell that starts it prints the terminal's settings before and after."""

    def __init__(self, machine, socket, columns, rows, arguments, environment, shell):
        self.tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        words = shlex.join([*machine.prefix, str(machine.program), "watch", *map(str, arguments)])
        script = f"echo before; s=$(stty -g); {words}; echo left $?; [ \"$s\" = \"$(stty -g)\" ] && echo as it was; sleep 3600"
        base = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "TMUX")}
        settings = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
        inside = shlex.join(["env", *(f"{key}={value}" for key, value in settings.items()), "sh", *(["-i"] if shell else ["-c", script])])
        # -u: tmux itself must know that the terminal supports UTF-8.
        subprocess.run([*self.tmux, "-u", "new-session", "-d", "-x", str(columns), "-y", str(rows), inside],
                       check=True, env={**base, "LC_ALL": "C.UTF-8"})

    def command(self, *words):
        return subprocess.run([*self.tmux, *words], check=True, stdout=subprocess.PIPE).stdout.decode()

    def text(self, *options):
        return self.command("capture-pane", "-p", *options)

    def press(self, *keys):
        self.command("send-keys", *keys)

    def type(self, text):
        self.command("send-keys", "-l", text)

    def resize(self, columns, rows):
        self.command("resize-window", "-x", str(columns), "-y", str(rows))

    def wait(self, pattern, absent=None):
        """Waits until the screen shows the pattern, and not the other one. Returns the match."""
        found = None

        def there():
            nonlocal found
            text = self.text()
            found = re.search(pattern, text, re.M)
            return found and not (absent and re.search(absent, text, re.M))

        try:
            wait_until(there, f"{pattern!r} on the screen")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows\n{self.text()}") from None
        return found

    def pid(self):
        """The pid of the program."""
        shell = int(self.command("display-message", "-p", "#{pane_pid}"))
        name = os.path.basename(PROGRAM)
        return next(pid for pid in children(shell)
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def watching(machine, *arguments, columns=80, rows=24, shell=False, **environment):
    """Runs watch on a terminal of that size. shell: starts only an interactive shell."""
    with tempfile.TemporaryDirectory(prefix="shmguard-tmux-") as directory:
        screen = Screen(machine, pathlib.Path(directory) / "socket", columns, rows, arguments, environment, shell)
        try:
            yield screen
        finally:
            screen.close()


def rows_of(screen):
    """(pid, role) of the processes on the screen, in order."""
    return [(int(pid), role) for pid, role in re.findall(r"^ *(\d+) +[│├└─ ]*(trainer|worker|manager|other)", screen.text(), re.M)]


@needs_root
@needs_tmux
def test_a_person_looks_around(small_shm, one_python):
    # Only one job: other processes on this machine, and their rows, come and go.
    with small_shm.training(one_python, workers=2) as trainer, \
            watching(small_shm, "--pid", trainer, "--interval", "0.5s") as screen:
        workers = sorted(set(children(trainer)))
        screen.wait(rf"^ *{trainer} trainer")
        screen.wait(rf"^ *{workers[0]} ├─worker")
        screen.wait(rf"^ *{workers[1]} └─worker")
        assert re.search(r"^/dev/shm \[T+ *\] \d+M of 64M \d+% (fine|warning|critical)", screen.text(), re.M)
        assert re.search(r"^ +T torch \d+M", screen.text(), re.M)
        assert re.search(r"^RAM +\[\|+ *\]", screen.text(), re.M)
        screen.wait(r"watch [\d.]+% [\d.]+M$")
        screen.wait(rf"^ *{trainer} trainer +[\d.]+[KMG] +[\d.]+[KMG] +[\d.]+[KMG] ")  # USS and PSS have been read by now

        # Trees and sorting.
        screen.press("t")
        screen.wait(rf"^ *{workers[0]} worker", absent="├")
        screen.press("I")
        wait_until(lambda: (pids := [pid for pid, _ in rows_of(screen)]) == sorted(pids, reverse=True), "falling pids")
        screen.press("I", ">", ">", ">", ">")
        screen.wait("RSS▼")
        screen.press("<")
        screen.wait("PSS▼")
        screen.press("F6")
        screen.wait("RSS▼")
        screen.press("F5")
        screen.wait("└─worker")

        # Filter, search.
        screen.press("F4")
        screen.type("no such thing")
        screen.wait("Nothing matches")
        screen.press("Escape")
        screen.wait(rf"^ *{trainer} trainer")
        screen.press("F4")
        screen.type(str(workers[1]))
        screen.press("Enter")
        screen.wait(rf"^ *{workers[1]} worker", absent=rf"^ *{workers[0]} ")
        screen.press("F4", "Escape")
        screen.wait(rf"^ *{workers[0]} ")
        screen.press("/")
        screen.type("nothing here")
        screen.wait("not found")
        screen.press("Escape")

        # Other pages, help, pause.
        screen.press("F2")
        screen.wait(rf"^torch_{trainer}_.* torch .*{trainer}|^torch_\d+_.* torch ")
        screen.press("Tab")
        screen.wait("EVENTS since")
        screen.press("Tab")
        screen.wait(rf"^ *{trainer} trainer")
        screen.press("F1")
        screen.wait("what would become free if the process ended")
        screen.press("x")
        screen.wait(rf"^ *{trainer} trainer")
        screen.press("Z")
        screen.wait("PAUSED")
        screen.press("Z")
        screen.wait("trainer", absent="PAUSED")

        # Several sizes, then back.
        screen.resize(200, 50)
        screen.wait(r"SHM +FDS +THR +CPU%.*RATE")
        assert "--batch 16 --side 256 --steps 50" in screen.text()
        for columns, rows in [(10, 3), (1, 1), (40, 10), (20, 5), (3, 30), (80, 24)]:
            screen.resize(columns, rows)
            screen.press("Down")
            wait_until(lambda c=columns, r=rows: screen.command("display-message", "-p", "#{pane_width} #{pane_height}").split()
                       == [str(c), str(r)], "the size")
            screen.press("Tab", "Tab", "Tab")
        screen.press("F1")  # keys act in order: when this one has, all have
        screen.wait("what would become free if the process ended")
        screen.press("x")
        screen.wait(rf"^ *{trainer} trainer")

        # The mouse: a click on a title, a click on a row, and the wheel (as a terminal reports them).
        head = screen.wait("(?s).*COMMAND").group().splitlines()
        place = f"\033[<0;{head[-1].index('FDS') + 1};{len(head)}"
        click = place + "M" + place + "m"
        screen.type(click)
        screen.wait("FDS▼")
        screen.type(click)
        screen.wait("FDS▲")
        screen.type("\033[<65;10;12M\033[<64;10;12M")

        # A worker is killed.
        os.kill(workers[0], signal.SIGKILL)
        screen.wait(r"ago: .*ended")
        screen.press("F2", "F2")
        screen.wait(rf"worker {workers[0]} ended")

        screen.press("q")
        screen.wait("^left 0\n^as it was")
        assert screen.text().startswith("before\n") and "trainer" not in screen.text()


@needs_tmux
@pytest.mark.parametrize("end, code", [("C-c", 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), ("F10", 0)])
def test_every_way_out_leaves_the_terminal_as_it_was(here, end, code):
    with watching(here, columns=60, rows=20) as screen:
        screen.wait("^RAM")
        if isinstance(end, str):
            screen.press(end)
        else:
            os.kill(screen.pid(), end)
        screen.wait(f"^left {code}\n^as it was")
        assert screen.text().startswith("before\n") and "RAM" not in screen.text()


@needs_tmux
def test_stopped_and_continued(here):
    with watching(here, shell=True) as screen:
        screen.type(f"{PROGRAM} watch\n")
        screen.wait("^RAM")
        screen.press("C-z")
        screen.wait("Stopped", absent="^RAM")
        screen.resize(100, 30)
        screen.type("fg\n")
        screen.wait("^RAM")
        wait_until(lambda: len(screen.text().splitlines()[0]) > 80, "the new width is used")
        pid = screen.pid()
        os.kill(pid, signal.SIGTSTP)
        screen.wait("(?s)Stopped.*Stopped", absent="^RAM")
        screen.type("fg\n")
        screen.wait("^RAM")
        screen.press("q")
        screen.wait("Stopped", absent="^RAM")


@needs_root
@needs_tmux
def test_plain_terminals(small_shm):
    (small_shm.shm / "psm_数据\x1b[2J").write_bytes(bytes(60 << 20))
    with watching(small_shm, LC_ALL="C", NO_COLOR="1") as screen:
        screen.wait(r"^/dev/shm \[-+ *\] 60M of 64M 94% critical")  # readable without colours
        screen.press("F2")
        screen.wait(r"^psm_\?+\\x1b\[2J +other .*none seen")
        raw = screen.text("-e")
        assert not re.search(r"\x1b\[[0-9;]*[34][0-7]m", raw), "no colours"
        assert screen.text().isascii()
        screen.press("q")
        screen.wait("^left 0")
    with watching(small_shm) as screen:
        screen.wait("critical")
        assert "\x1b[1m\x1b[31m" in screen.text("-e") or "\x1b[1;31m" in screen.text("-e"), "red"


@needs_root
@needs_tmux
@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs FUSE to make a read of /proc hang")
@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.timed
def test_a_process_that_hangs(private_shm, from_start):
    """A late sample is reported as late; keys still work, and q quits. The process reappears later."""
    job = private_shm.popen("sleep", "1000")
    stalls = None

    def stall():
        server = private_shm.popen(sys.executable, HERE / "stall.py", f"/proc/{job.pid}/status", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if server.stdout.readline() != b"ready\n":
            server.wait()
            pytest.skip("cannot mount a file with FUSE here")
        return server

    try:
        if from_start:
            stalls = stall()
        # The leak check would stop all threads, and wait for the one that hangs.
        with watching(private_shm, "--pid", job.pid, "--interval", "0.2s", columns=100, ASAN_OPTIONS="detect_leaks=0") as screen:
            if from_start:
                screen.wait("The first sample is taking long; a process may be hanging.")
            else:
                screen.wait(rf"^ *{job.pid} +other")
                stalls = stall()
                screen.wait(r"the sample is \d+ s late$")
                screen.press("F2")
                screen.wait("^NAME +KIND")
                screen.press("F2", "F2")
                screen.wait(rf"^ *{job.pid} +other")
                stalls.communicate()
                screen.wait("watch itself: ", absent="s late")
                stalls = stall()
            screen.wait(r"the sample is [1-9]\d* s late$")
            began = time.monotonic()
            screen.press("q")
            screen.wait("^left 0\n^as it was")
            assert time.monotonic() - began < 5, "one second, and the delay of a busy machine"
    finally:
        for process in (job, stalls):
            if process:
                process.kill()
                process.communicate()


@needs_root
@needs_tmux
def test_one_job_its_budget_and_its_end(private_shm):
    with scratch_directory() as scratch:
        job = private_shm.popen(private_shm.program, "run", "--quiet", "--budget", "256M", "--", PYTHONS["system"], TRAIN,
                                "--hold", "3600", "--workers", "1", stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": scratch})
        try:
            assert job.stdout.readline() == b"holding\n"
            trainer = next(pid for pid in children(job.pid) if str(TRAIN) in pathlib.Path(f"/proc/{pid}/cmdline").read_text())
            # The supervisor is above the job, but its budget is shown all the same.
            with watching(private_shm, "--pid", trainer, "--interval", "0.2s") as screen:
                screen.wait(rf"job of pid {trainer}, 1 trainer, 1 worker")
                screen.wait(r"^budget +\[\|+ *\] \d+M of 256M \d+% fine")
                os.kill(trainer, signal.SIGKILL)
                screen.wait("the job has ENDED")
                screen.press("Left")
                screen.press("b")
                screen.wait(rf"^ *{trainer} trainer")
                screen.press("q")
                screen.wait("^left 0")
        finally:
            end_tree(job)


@needs_root
def test_once(small_shm):
    with small_shm.training(PYTHONS["system"]) as trainer:
        done = small_shm.shmguard("watch", "--once", env={**os.environ, "LC_ALL": "C.UTF-8"})
        text = done.stdout.decode()
        assert done.returncode == 0 and done.stderr == b"" and "\x1b" not in text
        assert re.search(r"^/dev/shm \[T+ *\] \d+M of 64M", text, re.M)
        assert max(map(width, text.splitlines())) <= 80
        # All figures are there, even those that are not read in every look.
        row = re.search(rf"^ *{trainer} trainer +([\d.]+[KMG]) +([\d.]+[KMG]) +([\d.]+[KMG]) ", text, re.M)
        assert row, text
        assert len(re.findall(rf"^ *(?:{'|'.join(map(str, children(trainer)))}) [├└]─worker", text, re.M)) == 2
        assert not re.search("F1|Quit|watch ", text)

        wide = small_shm.shmguard("watch", "--once", "--pid", trainer, env={**os.environ, "LC_ALL": "C", "COLUMNS": "200"})
        assert wide.stdout.isascii() and b"--batch 16 --side 256 --steps 50" in wide.stdout and b"`-worker" in wide.stdout
        assert len([line for line in wide.stdout.splitlines() if b"-worker " in line and b"train.py" in line]) == 2

        code, text = on_terminal(small_shm, 80, "watch", "--once")
        assert code == 0 and "\x1b[" in text and "\x1b" not in CODES.sub("", text)
        assert "\x1b" not in on_terminal(small_shm, 80, "watch", "--once", NO_COLOR="1")[1]
        assert "\x1b" not in on_terminal(small_shm, 80, "watch", "--once", TERM="dumb")[1]


@needs_root
@needs_tmux
def test_replay(private_shm, tmp_path):
    recording = tmp_path / "night.db"
    with private_shm.training(PYTHONS["system"], workers=2) as trainer:
        workers = sorted(set(children(trainer)))
        recorder = private_shm.popen(private_shm.program, "record", "-o", recording, "--pid", trainer, "--interval", "0.1s",
                                     stderr=subprocess.DEVNULL)
        wait_until(lambda: b"2 workers" in private_shm.shmguard("watch", "--once", "--replay", recording).stdout,
                   "a recording that is being made can be looked at")
        os.kill(workers[0], signal.SIGKILL)  # the trainer notices and exits
        wait_until(lambda: has_ended(trainer), "the end")
        assert recorder.wait(timeout=PATIENCE) == 0
    with watching(private_shm, "--replay", recording) as screen:
        screen.wait(r"recording night.db, 1 trainer, 2 workers")
        screen.wait(r"^\[=*>-*\] 00:0\d of 00:\d\d x1 (playing|stopped)")
        screen.press("e")
        screen.wait(rf"ago: .*ended", absent="playing")
        screen.wait(r"^\[=+>\] .*stopped")
        screen.press("b")
        screen.wait(rf"^\[>-+\] 00:00 .*stopped")
        screen.wait(rf"^ *{workers[0]} ├─worker")
        screen.press("Right")
        screen.press("Left")
        screen.wait(rf"^\[>-+\] 00:00 .*stopped")
        screen.press("+", "+")
        screen.wait("x4")
        screen.press("Space")
        screen.wait(r"^\[=+>\] .*stopped")  # plays to the end
        screen.press("F2")
        screen.wait("no single segments")
        screen.press("q")
        screen.wait("^left 0\n^as it was")
    once = private_shm.shmguard("watch", "--replay", recording, "--once").stdout.decode()
    assert "recording night.db" in once and "ended" in once


def test_bad_input(here, tmp_path):
    broken = tmp_path / "a\nb.db"
    broken.write_bytes(b"SQLite format 3\0" + bytes(100))
    text = tmp_path / "notes.txt"
    text.write_text("no recording")
    for arguments, code, said in [
            ([], 64, ["not a terminal", "--once"]),
            (["--interval", "0", "--once"], 64, ["--interval", "0.1 s"]),
            (["--interval", "-1", "--once"], 64, ["--interval"]),
            (["--interval", "soon"], 64, ["--interval", '"soon"']),
            (["--replay", text, "--pid", "1", "--once"], 64, ["--replay", "--pid"]),
            (["--replay", text, "--once"], 65, ["notes.txt", "not a recording", "shmguard record"]),
            (["--replay", broken, "--once"], 65, ["a\\nb.db", "not a recording"]),
            (["--replay", tmp_path / "absent", "--once"], 65, ["absent", "No such file"]),
            (["--replay", tmp_path, "--once"], 65, [str(tmp_path)]),
            (["--replay", "/dev/null", "--once"], 65, ["/dev/null"]),
            (["--pid", "4194304", "--once"], 65, ["4194304", "shmguard ps"]),
            (["file"], 64, ['"file"'])]:
        refused(here.shmguard("watch", *arguments), code, *said)


@needs_tmux
@pytest.mark.parametrize("term, said", [("no-such-terminal", "is not known here"), ("dumb", "cannot move its cursor"), ("", "not known")])
def test_unusable_terminals(here, term, said):
    with watching(here, TERM=term) as screen:
        screen.wait(f"(?s)^shmguard: watch: .*{said}.*^left 69\n^as it was")
