# SPDX-License-Identifier: Apache-2.0
"""`shmguard record` and `run --record`: a training's memory use over time, in a file that any SQLite tool can open."""

import contextlib
import os
import signal
import sqlite3
import stat
import subprocess

import pytest

from conftest import PATIENCE, PROGRAM, PYTHONS, TRAIN, Machine, end_tree, needs_root, open_to_all, prepared_namespace, wait_until

# Two epochs, each with new workers. Each worker keeps 200 kB of each of its samples.
EPOCHS = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
kept = []
class Samples(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        kept.append(torch.ones(50_000))
        time.sleep(0.06)
        return torch.ones(100_000)
print("ready", flush=True)
sys.stdin.readline()
for epoch in range(2):
    for batch in DataLoader(Samples(), batch_size=4, num_workers=2):
        pass
"""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.db"


def ask(file, sql):
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


def ask_or_none(file, sql):
    """The answer, or None if the file does not exist or has no tables yet."""
    try:
        return ask(file, sql)
    except sqlite3.OperationalError:
        return None


def moments(file):
    rows = ask_or_none(file, "SELECT count(*) FROM moment")
    return rows[0][0] if rows else 0


def alone(file):
    return sorted(path.name for path in file.parent.iterdir() if path.name.startswith(file.name)) == [file.name]


@pytest.mark.timed
def test_a_command_is_recorded_with_its_workers(here, python, file):
    done = here.shmguard("record", "-o", file, "--interval", "0.1", "--", python, "-W", "ignore", "-c", EPOCHS, input=b"\n")
    assert done.returncode == 0, done
    assert done.stdout == b"ready\n"
    assert b"shmguard report" in done.stderr
    assert alone(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ask(file, "PRAGMA integrity_check") == [("ok",)]

    workers = ask(file, "SELECT pid, start_method, job FROM process WHERE role = 'worker'")
    assert len(workers) == 4, workers  # two per epoch
    [(trainer,)] = ask(file, "SELECT DISTINCT pid FROM samples WHERE role = 'trainer'")
    assert {job for _, _, job in workers} == {trainer}
    assert {method for _, method, _ in workers} == {"fork"}
    for kind in ("born", "ended"):
        told = ask(file, f"SELECT pid FROM event WHERE kind = '{kind}' AND role = 'worker'")
        assert sorted(told) == sorted((pid,) for pid, _, _ in workers), kind
    # Costly figures were read often enough to be useful, for each worker.
    for pid, known, growth in ask(file, "SELECT pid, count(uss), max(uss) - min(uss) FROM samples WHERE role = 'worker' GROUP BY pid"):
        assert known >= 2, pid
        assert growth > 500_000, pid
    assert ask(file, "SELECT max(shm) > 400000, max(segments) > 0 FROM samples WHERE role = 'worker'") == [(1, 1)]
    assert ask(file, "SELECT max(maps) > 100 FROM samples") == [(1,)]  # read rarely: a worker may have ended by then
    assert ask(file, "SELECT max(segments_torch) > 400000, min(shm_size) > 0, min(memory_available) > 0 FROM moment") == [(1, 1, 1)]
    assert ask(file, "SELECT count(guard_bytes) FROM moment") == [(0,)]
    assert ask(file, "SELECT value FROM meta WHERE key = 'interval'") == [(0.1,)]


def test_a_running_job_is_recorded_until_it_ends(here, file):
    job = here.popen(PYTHONS["system"], "-W", "ignore", "-c", EPOCHS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        recorder = here.popen(PROGRAM, "record", "-o", file, "--interval", "0.1", "--pid", job.pid, stderr=subprocess.PIPE)
        wait_until(lambda: moments(file) > 0, "the first moment")
        job.stdin.write(b"\n")
        job.stdin.close()
        assert job.wait(PATIENCE) == 0
        _, said = recorder.communicate(timeout=PATIENCE)
        assert recorder.returncode == 0, said
        assert b"shmguard report" in said
    finally:
        end_tree(job)
    assert len(ask(file, "SELECT pid FROM event WHERE kind = 'born' AND role = 'worker'")) == 4
    assert ask(file, "SELECT count(*) FROM process WHERE ended IS NULL") == [(0,)]
    assert ask(file, f"SELECT role FROM process WHERE pid = {job.pid}") == [("trainer",)]
    assert ask(file, "SELECT value FROM meta WHERE key = 'pid'") == [(job.pid,)]


def test_told_to_end_it_leaves_the_job_alone(here, tmp_path):
    with here.training(PYTHONS["system"], settle=False) as pid:
        for signo in (signal.SIGINT, signal.SIGTERM):
            file = tmp_path / f"{signo.name}.db"
            recorder = here.popen(PROGRAM, "record", "-o", file, "--pid", pid, stderr=subprocess.DEVNULL)
            wait_until(lambda: moments(file) > 0, "the first moment")
            recorder.send_signal(signo)
            assert recorder.wait(PATIENCE) == 0, signo
            os.kill(pid, 0)
            assert alone(file), signo
            assert ask(file, "SELECT count(*) FROM process WHERE ended IS NULL")[0][0] >= 3, signo


def test_a_killed_recorder_leaves_all_that_it_saw(here, file):
    with here.training(PYTHONS["system"], settle=False) as pid:
        recorder = here.popen(PROGRAM, "record", "-o", file, "--interval", "0.1", "--pid", pid)
        wait_until(lambda: moments(file) >= 5, "five moments")
        seen = moments(file)
        recorder.kill()
        recorder.wait()
        assert moments(file) >= seen
        assert ask(file, "PRAGMA integrity_check") == [("ok",)]
        # The file can be reused, because it is a recording.
        old = file.stat().st_ctime_ns
        recorder = here.popen(PROGRAM, "record", "-o", file, "--interval", "0.1", "--pid", pid, stderr=subprocess.DEVNULL)
        wait_until(lambda: file.exists() and file.stat().st_ctime_ns != old, "a new file")
        wait_until(lambda: moments(file) >= 2, "two new moments")
        busy = here.shmguard("record", "-o", file, "--pid", pid)
        assert busy.returncode == 65 and b"in use" in busy.stderr
        recorder.terminate()
        assert recorder.wait(PATIENCE) == 0


# Each attempt goes on until the recording has it: on a busy machine that takes longer than an interval.
ATTEMPTS = """
import os, sqlite3, sys, time

def until(sql):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as recording:
                if recording.execute(sql, {"pid": os.getpid()}).fetchone()[0]:
                    return
        except sqlite3.OperationalError:  # there is no table yet
            pass
        yield
        time.sleep(0.1)

if os.environ["SHMGUARD_ATTEMPT"] == "1":
    for _ in until("SELECT count(*) FROM process WHERE pid = :pid"):
        pass
    sys.exit(3)
import torch
from torch.utils.data import DataLoader
for _ in until("SELECT count(*) AND (SELECT max(guard_created) > 0 FROM moment) FROM process WHERE pid = :pid AND role = 'trainer'"):
    for batch in DataLoader([torch.ones(100_000)] * 8, batch_size=2, num_workers=1):
        time.sleep(0.2)
"""


@pytest.mark.timed
def test_run_records_all_attempts_and_the_guard(here, file):
    done = here.shmguard("run", "--record", file, "--retry", "1", "--degrade", "B=8,4", "--resume", "again", "--",
                         PYTHONS["system"], "-W", "ignore", "-c", ATTEMPTS, file)
    assert done.returncode == 0, done.stderr
    assert ask(file, "SELECT text FROM event WHERE kind = 'attempt'") == [("1: B=8",), ("2: B=8",)]
    assert ask(file, "SELECT count(*) FROM process WHERE role = 'trainer'") == [(1,)]
    assert ask(file, "SELECT max(guard_created) > 0, max(guard_budget) > 0 FROM moment") == [(1, 1)]
    assert alone(file)


# Many rows per sample, so that a small disk is soon full.
CROWD = """
import subprocess, time
crowd = [subprocess.Popen(["sleep", "60"]) for _ in range(60)]
time.sleep({seconds})
for one in crowd:
    one.kill()
print("trained to the end")
"""


@needs_root
@pytest.mark.parametrize("options, seconds", [(("record", "--interval", "0.05", "-o"), 3), (("run", "--record"), 7)])
@pytest.mark.timed
def test_a_full_disk_stops_the_recording_and_not_the_training(options, seconds, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    with prepared_namespace(f"mount -t tmpfs -o size=160k tmpfs {disk}") as machine:
        done = machine.shmguard(*options, disk / "run.db", "--", PYTHONS["system"], "-c", CROWD.format(seconds=seconds))
        assert done.returncode == 0, done.stderr
        assert done.stdout == b"trained to the end\n"
        assert done.stderr.count(b"the recording stopped, the training continues") == 1, done.stderr
        assert b"No space left" in done.stderr
        for path in (machine.shm.parent.parent / str(disk)[1:]).iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert moments(tmp_path / "run.db") > 0


@pytest.mark.parametrize("options", [("record", "--interval", "0.05", "-o"), ("run", "--record")])
def test_a_mapped_page_that_goes_stops_the_recording_and_not_the_training(options, here, file):
    """As on a full copy-on-write file system: SQLite's -shm file gives the recorder SIGBUS."""
    # When the -wal has this size, the second sample is being written and the first one is complete.
    looks = 'until [ "$(stat -c %s "$0-wal")" -gt 30000 ]; do sleep 0.1; done'
    command = looks + '; : > "$0-shm"; sleep 2.5; echo trained; exit 6'
    done = here.shmguard(*options, file, "--", "sh", "-c", command, file)
    assert (done.returncode, done.stdout) == (6, b"trained\n"), done.stderr
    assert done.stderr.count(b"the recording stopped, the training continues") == 1, done.stderr
    assert moments(file) > 0


def test_the_command_is_as_without_us(here, file):
    assert here.shmguard("record", "-q", "-o", file, "--", "sh", "-c", "exit 7").returncode == 7
    assert here.shmguard("record", "-q", "-o", file, "--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    done = here.shmguard("record", "-o", file, "--", "env")
    assert b"LD_PRELOAD" not in done.stdout or "LD_PRELOAD" in os.environ
    assert here.shmguard("record", "-q", "-i", "60", "-o", file, "--", "true").stderr == b""
    assert moments(file) in (1, 2)  # after its end, and before, if it still runs when it is looked at
    before = file.read_bytes()
    done = here.shmguard("record", "-o", file, "--", "/nowhere/to/be/found")
    assert done.returncode == 127
    assert file.read_bytes() == before


def test_bad_input(here, file, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("three days of work")
    for arguments, code, words in [
        (["--", "true"], 64, b"-o"),
        (["-o", file], 64, b"--pid"),
        (["-o", file, "--pid", os.getpid(), "--", "true"], 64, b"not both"),
        (["-o", file, "--interval", "0", "--", "true"], 64, b"--interval"),
        (["-o", file, "--interval", "2h", "--", "true"], 64, b"--interval"),
        (["-o", file, "--interval", "soon", "--", "true"], 64, b"--interval"),
        (["-o", file, "--pid", 4194305], 65, b"no process"),
        (["-o", file, "--pid", "x"], 64, b"--pid"),
        (["-o", file, "true"], 64, b"--"),
        (["-o", tmp_path, "--", "true"], 65, b"directory"),
        (["-o", other, "--", "true"], 65, b"not a recording"),
        (["-o", "", "--", "true"], 65, b"the name of the file is empty"),
        (["-o", tmp_path / "none" / "x.db", "--", "true"], 65, b"because its directory does not exist"),
    ]:
        done = here.shmguard("record", *arguments)
        assert done.returncode == code, (arguments, done)
        assert words in done.stderr and done.stderr.count(b"\n") == 1, (arguments, done)
    assert other.read_text() == "three days of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt"]
    done = here.shmguard("run", "--record", other, "--", "true")
    assert done.returncode == 65 and b"not a recording" in done.stderr
    assert other.read_text() == "three days of work"


@needs_root
def test_what_is_not_ours_is_refused(here, ordinary, tmp_path):
    open_to_all(tmp_path)
    user = ordinary(Machine())
    done = user.shmguard("record", "-o", tmp_path / "run.db", "--pid", os.getpid())
    assert done.returncode == 77, done
    assert b"another user" in done.stderr
    done = user.shmguard("record", "-o", "/etc/run.db", "--", "true")
    assert done.returncode == 77, done


@pytest.mark.timed
def test_the_end_is_seen_between_two_looks(file):
    """The end is noticed at once, however long the interval is, even if a child outlives the job's first process."""
    with subprocess.Popen(["sh", "-c", "sleep 3 & exec sleep 2"]) as job:
        machine = Machine()
        done = machine.shmguard("record", "-q", "-i", "600", "-o", file, "--pid", str(job.pid), timeout=60)
    assert done.returncode == 0, done
    assert moments(file) >= 2
    ended = ask(file, "SELECT seconds FROM event WHERE kind = 'ended' ORDER BY seconds")
    assert len(ended) == 2 and ended[-1][0] < 30


# What docs/recording.md shows, followed by what no one should do: lock the file for seconds, and write strange text.
MARKING = """
import contextlib, os, sqlite3, sys, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
class Samples(Dataset):
    def __len__(self):
        return 20
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.ones(1000)
loader = DataLoader(Samples(), batch_size=4, num_workers=1, persistent_workers=True)
for epoch in range(3):
    with contextlib.suppress(KeyError, sqlite3.Error), contextlib.closing(sqlite3.connect(os.environ["SHMGUARD_RECORDING"], 0.5)) as db, db:
        db.execute("INSERT INTO mark(text) VALUES (?)", [f"epoch {epoch}"])
    for batch in loader:
        pass
if sys.argv[1:]:
    db = sqlite3.connect(os.environ["SHMGUARD_RECORDING"], isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO mark(text) VALUES (?)", ["\\033[2J\\033]0;gone\\007" + "long " * 100_000])
    db.execute("INSERT INTO mark(time, text) VALUES (?, ?)", [time.time(), b"\\xff\\x00"])
    db.execute("INSERT INTO mark(time, text) VALUES ('soon', NULL)")
    print("held", time.time(), flush=True)
    time.sleep(5)
    print("over", time.time(), flush=True)
    os._exit(3) if sys.argv[1] == "never" else db.execute("COMMIT")
"""


@pytest.mark.parametrize("options", [("record", "-q", "-i", "0.1", "-o"), ("run", "--no-guard", "--quiet", "--record")])
@pytest.mark.timed
def test_the_users_marks(file, options):
    done = Machine().shmguard(*options, file, "--", PYTHONS["system"], "-c", MARKING, stderr=subprocess.PIPE)
    assert done.returncode == 0, done
    answer = Machine().json("report", file)
    epochs = [event for event in answer["events"] if event["kind"] == "epoch"]
    assert [event["text"] for event in epochs] == ["epoch 0", "epoch 1", "epoch 2"]
    times = [event["seconds"] for event in epochs]
    assert times == sorted(times) and 0 < times[0] and times[1] - times[0] >= 0.9
    assert alone(file)


@pytest.mark.parametrize("end", ["commit", "never"])
@pytest.mark.timed
def test_a_mark_that_holds_the_file(file, end):
    """No samples of these seconds are lost, and control characters in the text do not reach a terminal."""
    done = Machine().shmguard("record", "-i", "0.1", "-o", file, "--", PYTHONS["system"], "-c", MARKING, end)
    assert done.returncode == (3 if end == "never" else 0), done
    assert b"lock" not in done.stderr and b"stopped" not in done.stderr, done
    held, over = (float(line.split()[1]) for line in done.stdout.decode().splitlines())
    began = ask(file, "SELECT value FROM meta WHERE key = 'began'")[0][0]
    times = [row[0] + began for row in ask(file, "SELECT seconds FROM moment ORDER BY id")]
    within = [time for time in times if held <= time <= over]
    assert over - held >= 4.9 and len(within) > 10, "each sample waits 0.1 s, and the next one comes 0.1 s later"
    assert max(after - before for before, after in zip(within, within[1:])) < 2.5
    marks = [event for event in Machine().json("report", file)["events"] if event["kind"] == "mark"]
    assert len(marks) == (2 if end == "commit" else 0)
    for command in (["report", file], ["watch", "--once", "--replay", file]):
        shown = Machine().shmguard(*command, "--color", "never")
        assert shown.returncode == 0 and b"\033" not in shown.stdout and b"\007" not in shown.stdout, shown
