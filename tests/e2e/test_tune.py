# SPDX-License-Identifier: Apache-2.0
"""`shmguard tune` with real loaders: it finds the fast settings, stays below the ceiling, survives trials that die, and
resumes where it stopped.
"""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import PATIENCE, PROGRAM, PROJECT, has_ended, needs_root, wait_until
from schema import loads_checked
from test_bad_input import refused
from test_run import PYTHON, end_marked, mark, marked, on_terminal, script  # noqa: F401

LOAD = PROJECT / "bench" / "tune-load.py"
RATE = ("--rate", "rate: ([0-9.]+)")

# A training without PyTorch: it starts quickly, and its rate depends only on its settings.
FAKE = """
    import os, sys, time
    batch, workers = int(sys.argv[1]), int(sys.argv[2])
    rate = min(batch, 8) * 10 * min(workers, 3) - 2 * max(workers - 3, 0)
    if os.environ.get("FAKE_FAIL") == f"{batch},{workers}":
        raise ValueError("I do not like these")
    while True:
        print(f"step, rate: {rate}")
        time.sleep(0.02)
"""
GRID = ("--vary", "batch=1,2,4,8,16,32", "--vary", "workers=1..5")


def command(python, kind):
    return ("--", python, "-W", "ignore", LOAD, "--kind", kind, "--batch", "{batch}", "--workers", "{workers}")


@pytest.fixture
def fake(tmp_path):
    return ("--", sys.executable, script(tmp_path, FAKE), "{batch}", "{workers}")


def answer_of(machine, *arguments, code=0, **kwargs):
    done = machine.shmguard("tune", "--json", *arguments, **kwargs)
    assert done.returncode == code, done
    assert done.stderr == b"" or code, done
    return loads_checked("tune", done)


@pytest.mark.timed
def test_the_search(here, fake):
    """It finds the best setting with a third of the grid."""
    answer = answer_of(here, "--trial", "1s", *RATE, *GRID, *fake)
    assert len(answer["trials"]) <= answer["grid"] / 3 == 10
    assert 0.95 * 240 <= answer["best"]["rate"] <= 240
    assert answer["safe"] and answer["unit"] == "samples/s"
    assert all(trial["peaks"]["rss"] > 0 for trial in answer["trials"])


@pytest.mark.parametrize("by", ["guard", "rate"])
@pytest.mark.slow
@pytest.mark.timed
def test_a_real_loader(here, one_python, by):
    """By the guard's own count and by what the training prints: large batches beat single samples."""
    rate = RATE if by == "rate" else ()
    answer = answer_of(here, "--trial", "1s", "--trials", "4", *rate, "--vary", "batch=1,16", "--vary", "workers=1,2",
                       *command(one_python, "trainer"))
    assert answer["unit"] == ("samples/s" if rate else "bytes/s")
    assert answer["best"]["values"]["batch"] == "16"
    assert all(trial["cause"]["id"] == "ok" for trial in answer["trials"])
    assert all(trial["peaks"]["processes"] >= 2 for trial in answer["trials"])


@pytest.mark.timed
def test_text(here, fake):
    for locale in ("C.UTF-8", "C"):
        done = here.shmguard("tune", "--trial", "1s", "--trials", "2", *RATE, *GRID, *fake,
                             env={**os.environ, "LC_ALL": locale})
        assert done.returncode == 0, done
        text = done.stdout.decode()
        assert all(len(line) <= 80 for line in text.splitlines()), text
        assert ("█" in text) == (locale == "C.UTF-8") and text.isascii() == (locale == "C")
        assert "best" in text and "Settings tried: 2 of 30, in 2 trials." in " ".join(text.split())
        assert done.stderr.count(b"trial ") == 2 and b"\033" not in done.stderr


@pytest.mark.timed
def test_progress(fake, mark):
    """A terminal shows the trial, its setting and the time left. Ctrl-C ends the search and prints what is known."""
    line = [PROGRAM, "tune", "--trial", "2s", "--trials", "9", *map(str, [*RATE, *GRID, *fake])]
    with on_terminal(*line, env=mark) as terminal:
        terminal.expect(b"shmguard: trial 1/9, about ")
        terminal.expect(b"left: batch=4 workers=3")
        terminal.expect(b"shmguard: trial 2/9")
        terminal.type(b"\x03")
        terminal.expect(b"interrupted")
        assert terminal.wait() == -signal.SIGINT
    assert marked(mark) == []


@needs_root
@pytest.mark.slow
@pytest.mark.timed
def test_a_ceiling(small_shm, one_python):
    """Settings that do not fit are not tried, or not chosen. The small /dev/shm does not matter."""
    answer = answer_of(small_shm, "--trial", "1s", *RATE, "--memory", "700M", "--trials", "4", "--vary", "batch=1,16,256", "--vary", "workers=1,2",
                       *command(one_python, "transport"))
    memory = {tuple(trial["values"].values()): trial["peaks"]["shm"] + trial["peaks"]["own"] for trial in answer["trials"]}
    assert answer["safe"] and answer["best"]["memory"] <= 700 << 20
    assert answer["best"]["values"]["batch"] != "256"
    too_large = [values for values, size in memory.items() if size > 700 << 20]
    assert answer["skipped"] or too_large


@pytest.mark.timed
def test_begins_where_it_is_safe(here, fake):
    """The size of a sample decides where the search begins, and what is ruled out before the first trial."""
    line = ("--trial", "1s", "--trials", "1", "--memory", "2G", *RATE, *GRID)
    answer = answer_of(here, *line, "--sample", "uint8[8388608]", *fake)
    assert answer["start"]["fits"] and not answer["start"]["assumed"]
    assert answer["trials"][0]["values"] == answer["start"]["values"] == {"batch": "4", "workers": "3"}
    assert answer["start"]["shm"] == 9 * 4 * 8388608
    skipped = [one["values"] for one in answer["skipped"]]
    assert {"batch": "32", "workers": "5"} in skipped and answer["start"]["values"] not in skipped
    answer = answer_of(here, *line, *fake)
    assert answer["start"]["assumed"] and answer["trials"][0]["values"] == {"batch": "4", "workers": "2"}
    refused(here.shmguard("tune", *line, "--sample", "uint8[1073741824]", *fake), 65, "none of the settings fits in 2.0 GiB")


@pytest.mark.timed
def test_trials_that_die(here, fake):
    answer = answer_of(here, "--trial", "1s", "--trials", "3", *RATE, *GRID, *fake, env={**os.environ, "FAKE_FAIL": "4,3"})
    died = [trial for trial in answer["trials"] if trial["cause"]["id"] != "ok"]
    assert [trial["values"] for trial in died] == [{"batch": "4", "workers": "3"}], "the middle comes first"
    assert died[0]["cause"]["id"] == "python-error" and "I do not like these" in died[0]["cause"]["summary"]
    assert died[0]["rate"] is None and answer["best"]["values"] != died[0]["values"]


@pytest.mark.timed
def test_going_on(here, fake, tmp_path, mark):
    """An interrupted search keeps its results. The same command resumes it, and repeats no trial."""
    state = tmp_path / "state.json"
    line = [PROGRAM, "tune", "--trial", "1s", "--trials", "5", "--state", str(state), *map(str, [*RATE, *GRID, *fake])]
    job = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=mark)
    wait_until(lambda: state.exists() and len(json.loads(state.read_text())["trials"]) >= 2, "two trials")
    job.send_signal(signal.SIGTERM)
    out, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 128 + signal.SIGTERM, err
    assert b"interrupted" in out
    assert marked(mark) == []
    before = json.loads(state.read_text())["trials"]
    line = ("--trial", "1s", "--trials", "4", "--memory", "8G", "--state", state, *RATE, *GRID, *fake)
    answer = answer_of(here, *line)
    assert [trial["values"] for trial in answer["trials"][:len(before)]] == [trial["values"] for trial in before]
    assert len(answer["trials"]) == 4
    kept = state.read_bytes(), state.stat().st_mtime_ns
    assert answer_of(here, *line) == answer and (state.read_bytes(), state.stat().st_mtime_ns) == kept, "nothing was left to try"
    # A state of another search, or an invalid one, is refused and left unchanged.
    for text, said in [(state.read_text(), "--vary"), ("{", "JSON"), ("[]", "not a state"), ('{"schema": 5}', "not a state")]:
        state.write_text(text)
        refused(here.shmguard("tune", "--state", state, *RATE, "--vary", "batch=1,2", "--vary", "workers=1", *fake), 65,
                str(state), said)
        assert state.read_text() == text
    refused(here.shmguard("tune", "--state", tmp_path / "no" / "file", *GRID, *fake), 65, "No such file")


@pytest.mark.timed
def test_nothing_is_left(here, tmp_path, mark):
    """A command that ignores SIGTERM is ended all the same, with children that ignore it too."""
    stubborn = script(tmp_path, """
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(300)"])
        while True:
            print("rate: 5", sys.argv[1])
            time.sleep(0.02)
    """)
    answer = answer_of(here, "--trial", "1s", "--trials", "1", *RATE, "--vary", "n=1,2", "--", sys.executable, stubborn, "{n}",
                       env=mark)
    assert answer["best"]["rate"] == 5
    wait_until(lambda: all(map(has_ended, marked(mark))), "all of it ends")
    end_marked(mark)


QUICK = ("--trial", "1s", "--start", "2s")


@pytest.mark.parametrize("line, said", [
    ([*GRID, "--", "true"], ["{batch}", "is not in the command"]),
    (["--", "python", "train.py"], ["nothing varies", "{workers}"]),
    (["--vary", "batch", "--", "true", "{batch}"], ["no values", "batch"]),
    (["--vary", "batch=", "--", "true", "{batch}"], ["one of the values", "is empty"]),
    (["--vary", "batch=4", "--", "true", "{batch}"], ["several values"]),
    (["--vary", "batch=0,4", "--", "true", "{batch}"], ['"0"', "at least 1"]),
    (["--vary", "batch=4,-4", "--", "true", "{batch}"], ['"-4"', "at least 1"]),
    (["--vary", "batch=-4,4", "--", "true", "{batch}"], ['"-4"', "at least 1"]),
    (["--vary", "workers=-1,4", "--", "true", "{workers}"], ['"-1"', "0 or more"]),
    (["--vary", "workers=0..2", "--", "true", "{workers}"], ['"0"', "--rate"]),
    (["--vary", "n=8..1", "--", "true", "{n}"], ['"8..1"', "backwards"]),
    (["--vary", "n=1..1000000", "--", "true", "{n}"], ["64"]),
    (["--vary", "n=0..18446744073709551615", "--", "true", "{n}"], ["64"]),
    (["--vary", "n=1,2,1", "--", "true", "{n}"], ['"1"', "twice"]),
    (["--vary", "n=1..3,2", "--", "true", "{n}"], ['"2"', "twice"]),
    (["--vary", "n=1,2", "--vary", "N=1,2", "--", "true", "{n}"], ["given before"]),
    (["--vary", "a=1..64", "--vary", "b=1..64", "--vary", "c=1,2", "--", "true", "{a}{b}{c}"], ["8192", "too many"]),
    (["--rate", "(", *GRID, "--", "true", "{batch}"], ["--rate", "not a regular expression"]),
    (["--rate", "[0-9]+", *GRID, "--", "true", "{batch}"], ["--rate", "parentheses"]),
    (["--trial", "0", *GRID, "--", "true"], ["--trial"]),
    (["--trial", "-5", *GRID, "--", "true"], ["--trial", '"-5"']),
    (["--trial", "fast", *GRID, "--", "true"], ["--trial", '"fast"']),
    (["--trials", "0", *GRID, "--", "true"], ["--trials"]),
    (["--trials", "-1", *GRID, "--", "true"], ["--trials", '"-1"']),
    (["--start", "0", *GRID, "--", "true"], ["--start"]),
    (["--memory", "0", *GRID, "--", "true"], ["--memory", '"0"']),
    (["--sample", "float33[3]", *GRID, "--", "true", "{batch}", "{workers}"], ["--sample", "float33"]),
    (["--sample", "int64", "--vary", "workers=1,2", "--", "true", "{workers}"], ["--sample", "{batch}"]),
    (["--memory", "lots", *GRID, "--", "true"], ["--memory", '"lots"']),
    ([*GRID, "true"], ["put -- before"]),
    ([*GRID, "--"], ["no command"]),
])
def test_wrong_usage(here, line, said):
    refused(here.shmguard("tune", *line), 64, "tune: ", *said)


@pytest.mark.parametrize("shell, rate, said", [
    ("sleep 60 {n}", RATE, ["printed nothing", "--rate"]),
    ("while :; do echo step {n}; sleep 0.1; done", RATE, ["matched none", "step"]),
    ("while :; do echo rate: fast {n}; sleep 0.1; done", ("--rate", "rate: (.*)"), ["did not match a number", "fast"]),
    ("printf 'no\\033[31m {n}'; sleep 60", RATE, ["printed nothing"]),
    ("while :; do echo {n}; sleep 0.1; done", (), ["no shared tensor", "--rate"]),
    ("echo rate: 5 {n}", RATE, ["ended after", "more steps"]),
])
@pytest.mark.timed
def test_trials_that_tell_nothing(here, shell, rate, said):
    done = here.shmguard("tune", "--json", *QUICK, *rate, "--vary", "n=1,2,3", "--", "sh", "-c", shell)
    refused(done, 65, "tune: the first trial failed", *said)


def test_a_command_that_does_not_exist(here):
    refused(here.shmguard("tune", *RATE, "--vary", "n=1,2", "--", "/nonexistent", "{n}"), 127, "command not found")


def test_the_last_line_of_what_fails(here):
    done = here.shmguard("tune", "--quiet", *QUICK, *RATE, "--vary", "n=1..9", "--", "sh", "-c", "echo no such option {n} >&2; exit 2")
    refused(done, 65, "exited with code 2", "The last line that it printed: no such option")


def test_all_die(here):
    done = here.shmguard("tune", "--quiet", *QUICK, *RATE, "--vary", "n=1..9", "--", PYTHON, "-c", "raise ValueError({n})")
    refused(done, 65, "no trial could be measured", "ValueError")
