# SPDX-License-Identifier: Apache-2.0
"""shmguard where PID of a training without the guard: CPython 3.14 is asked from outside, and others say why not."""

import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import PROGRAM, PROJECT, children, wait_until
from schema import loads_checked
from test_bad_input import refused
from test_lane import INTERPRETERS
from test_where import STUB, extension_make, found

SIGNALS = PROJECT / "tests" / "guard" / "where_signals.py"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("SHMGUARD", "LD_PRELOAD"))}


@pytest.fixture(scope="module")
def python():
    if (3, 14) not in INTERPRETERS:
        pytest.skip("python3.14 is not in PATH: no other interpreter can be asked without the guard")
    return INTERPRETERS[3, 14]


def files():
    return set(pathlib.Path("/tmp").glob("shmguard-where-*"))


class Job:
    def __init__(self, *words, **environment):
        self.job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**ENVIRONMENT, **environment})

    @property
    def pid(self):
        return self.job.pid

    def result(self):
        output, errors = self.job.communicate()
        return output, errors, self.job.returncode


def training(python, kind, seconds, folder, **environment):
    clean = [] if kind == "ends" else ["--clean"]  # workers end in the middle of a search
    job = Job(python, STUB, kind, str(seconds), extension_make(folder), *clean, **environment)
    wait_until(lambda: len(list(children(job.pid))) >= 2, "workers")
    time.sleep(1)
    return job


def where(job):
    return subprocess.Popen([PROGRAM, "where", "--json", str(job.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("kind", ["list", "forks"])
def test_line_is_named_and_nothing_stays(python, kind, tmp_path):
    before = files()
    job = training(python, kind, 45, tmp_path, PYTHONWARNINGS="ignore")  # Python warns of the forks of "forks"
    search = where(job)
    answer, errors = search.communicate()
    assert search.returncode == 0, errors
    report = loads_checked("where", subprocess.CompletedProcess([], 0, answer))
    assert job.result() == ("0\n", "", 0)
    assert files() <= before
    first = found(report)[0]
    line = next(number for number, text in enumerate(STUB.read_text().splitlines(), 1) if text.endswith("# leaks: list"))
    assert (first["file"], first["line"], first["function"], first["kind"]) == (str(STUB), line, "load", "python")


def test_other_memory_needs_the_guard(python, tmp_path):
    job = training(python, "extension", 40, tmp_path)
    answer = subprocess.run([PROGRAM, "where", str(job.pid)], stdout=subprocess.PIPE, check=True, text=True).stdout
    assert "only Python objects can be looked at" in " ".join(answer.split()) and "shmguard run --where" in " ".join(answer.split())
    assert job.result() == ("0\n", "", 0)


@pytest.mark.long
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("seconds", [0.3, 6, 15, 19])
def test_search_that_is_ended_harms_nothing(python, tmp_path, ending, seconds):
    """The trace ends, by itself if need be."""
    job = training(python, "list", 55, tmp_path)
    search = where(job)
    time.sleep(seconds)
    search.send_signal(ending)
    search.communicate()
    assert search.returncode == -ending
    output, errors, code = job.result()
    assert (errors, code) == ("", 0)
    assert ending == signal.SIGKILL or output == "0\n"
    if ending == signal.SIGKILL:
        for file in files():
            file.unlink()


@pytest.mark.long
def test_workers_may_end_at_any_moment(python, tmp_path):
    job = training(python, "ends", 90, tmp_path)
    searches = [where(job) for _ in range(2)]
    for search in searches:
        search.communicate()
        assert search.returncode in (0, 69)
    output, errors, code = job.result()
    assert (output, code) == ("0\n", 0), errors


def test_signals_reach_the_program(python):
    """Python's signal handlers raise in the main thread, where the question is asked, too."""
    job = Job(python, SIGNALS, "30")
    time.sleep(2)
    where(job).communicate()
    output, _, code = job.result()
    raised, caught, same = output.split()
    assert code == 0 and int(raised) > 100 and (int(raised) - int(caught)) <= 2, (output, same)


def test_switched_off_is_said(python, here):
    job = Job(python, "-c", "import time; print(1, flush=True); time.sleep(60)", PYTHON_DISABLE_REMOTE_DEBUG="1")
    job.job.stdout.readline()
    refused(here.shmguard("where", job.pid), 69, "switched off", "shmguard run --where")
    job.job.kill()


def test_without_a_loader_it_is_said(python, here):
    job = Job(python, "-c", "import threading, time; threading.Thread(target=time.sleep, args=(40,)).start()\nwhile True: time.sleep(0.01)")
    time.sleep(1)
    refused(here.shmguard("where", job.pid), 69, "no process could look", "shmguard run --where")
    assert job.job.poll() is None
    job.job.kill()
    assert job.result()[1] == ""


@pytest.mark.parametrize("version", [version for version in INTERPRETERS if version != (3, 14)], ids=lambda version: "{}.{}".format(*version))
def test_other_versions_are_said(version, here):
    job = Job(INTERPRETERS[version], "-c", "import sys, time; print(1); sys.stdout.flush(); time.sleep(60)")
    job.job.stdout.readline()
    refused(here.shmguard("where", job.pid), 69, "has no guard", "3.14", "shmguard run --where")
    job.job.kill()
