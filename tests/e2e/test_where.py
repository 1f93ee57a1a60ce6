# SPDX-License-Identifier: Apache-2.0
"""run --where, record --where and where: the line that leaks is named (leaks.py), and none is where nothing leaks.

The short tests share three trainings that run at the same time; make soak has all kinds, with both versions of PyTorch.
"""

import os
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import HERE, PATIENCE, PROGRAM, PROJECT, children, python_of, wait_until
from schema import loads_checked
from test_bad_input import refused
from test_lane import INTERPRETERS, version_name

shares_trainings = pytest.mark.xdist_group("trainings")

LEAKS = HERE / "leaks.py"
STUB = PROJECT / "tests" / "guard" / "where_stub.py"
KINDS = ("list", "cache", "closure", "graph", "views", "extension", "file", "interned", "logger", "exceptions", "trainer", "collate")
STEADY = ("steady", "garbage", "bounded", "warm-up")
IN_TRAINER = ("graph", "trainer")
EXTENSION = """
#include <stdlib.h>
#include <string.h>
char *kept;
void leak(size_t size)
{
    kept = malloc(size);
    if (kept)
        memset(kept, 1, size);
}
"""


def lines_of(kind):
    return {number for number, line in enumerate(LEAKS.read_text().splitlines(), 1) if re.search(rf"# leaks: {kind}$", line)}


def extension_make(folder):
    """A library that leaks, made with the compiler that made shmguard."""
    library = folder / "leaking.so"
    if not library.exists():
        (folder / "leaking.c").write_text(EXTENSION)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-g", "-o", library, folder / "leaking.c"], check=True)
    return library


def words_of(kind, seconds, folder, *more):
    words = [str(LEAKS), kind, str(seconds), *more]
    return words + ["--extension", str(extension_make(folder))] if kind == "extension" else words


def found(report):
    """The sites that are lines, the largest first."""
    return [site for site in report["sites"] if site["kind"] != "attribute"]


def is_named(report, kind):
    """Whether the first line is the one that leaks."""
    lines = found(report)
    return bool(lines) and os.path.basename(lines[0]["file"] or "") == LEAKS.name and lines[0]["line"] in lines_of(kind)


def report_of(recording):
    return loads_checked("report", subprocess.run([PROGRAM, "report", "--json", recording], stdout=subprocess.PIPE, check=True))


class Training:
    def __init__(self, python, kind, folder, seconds=40, how=("run", "--quiet", "--where", "--record"), more=()):
        self.kind = kind
        self.recording = folder / f"{kind}.db"
        self.job = subprocess.Popen([PROGRAM, *how, self.recording, "--", python, *words_of(kind, seconds, folder, *more)],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def report(self):
        output, errors = self.job.communicate()
        assert self.job.returncode == 0, errors
        assert int(output) > 0, "it has trained"
        return report_of(self.recording)


def child_of(pid):
    """Of that process, when there is one."""
    wait_until(lambda: list(children(pid)), "a child")
    return str(next(iter(children(pid))))


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Of short trainings, all at once. One is not asked before it runs, by the pid of a worker."""
    folder = tmp_path_factory.mktemp("where")
    python = python_of("system")
    asked = Training(python, "trainer", folder, seconds=55, how=("run", "--quiet", "--record"))
    trainings = [asked, Training(python, "list", folder), Training(python, "steady", folder),
                 Training(python, "extension", folder, how=("record", "--quiet", "--where", "-o"))]
    worker = child_of(child_of(asked.job.pid))
    answer = subprocess.run([PROGRAM, "where", "--json", worker], stdout=subprocess.PIPE, check=True)
    return {"asked": answer, **{training.kind: (training.report(), training.recording) for training in trainings}}


@pytest.mark.parametrize("kind", ["list", "trainer", "extension"])
@shares_trainings
@pytest.mark.timed
def test_line_is_named(reports, kind):
    report, _ = reports[kind]
    assert is_named(report, kind), report["sites"]
    first = found(report)[0]
    assert first["kind"] == ("native" if kind == "extension" else "python")
    assert first["share"] > 0.5 and first["bytes_per_minute"] > 1 << 20
    assert (first["worker"] is None) == (kind in IN_TRAINER)
    assert "explains" in first["words"] and LEAKS.name in first["words"]


@shares_trainings
@pytest.mark.timed
def test_attribute_is_named(reports):
    attributes = [site["function"] for site in reports["list"][0]["sites"] if site["kind"] == "attribute"]
    assert "dataset.kept: list" in attributes


@shares_trainings
@pytest.mark.timed
def test_nothing_is_named_for_a_steady_one(reports):
    report, _ = reports["steady"]
    assert report["sites"] == [] and report["site_notes"]


@shares_trainings
@pytest.mark.timed
def test_report_and_page_show_the_line(reports, tmp_path):
    _, recording = reports["list"]
    text = subprocess.run([PROGRAM, "report", recording], stdout=subprocess.PIPE, check=True, text=True).stdout
    page = tmp_path / "page.html"
    subprocess.run([PROGRAM, "report", recording, "-o", page], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    watched = subprocess.run([PROGRAM, "watch", "--once", "--replay", recording], stdout=subprocess.PIPE, check=True, text=True).stdout
    line = min(lines_of("list"))
    assert re.search(rf"^leak +leaks\.py:{line} in do_list: keeps ", watched, re.M)
    assert re.search(rf"  leaks\.py:{line} in do_list: keeps [0-9.]+ MiB/min \(measured in worker \d over \d+ s\); explains \d+% of the growth\.", " ".join(text.split()).replace(" leaks", "  leaks"))
    assert f"leaks.py:{line} in do_list" in page.read_text()


@shares_trainings
@pytest.mark.timed
def test_running_job_is_asked(reports):
    assert is_named(loads_checked("where", reports["asked"]), "trainer")


@pytest.mark.long
def test_ends_of_every_kind_leave_the_training_unharmed(tmp_path):
    """Workers of short epochs come and go during all stages, and the supervisor is told to end in the middle of one."""
    python = python_of("system")
    training = Training(python, "cache", tmp_path, seconds=25, more=("--epoch", "600"))
    report = training.report()
    assert report["sites"] is not None
    job = subprocess.Popen([PROGRAM, "run", "--quiet", "--where", "--", python, *words_of("list", 60, tmp_path)], stdout=subprocess.DEVNULL)
    time.sleep(14)
    job.send_signal(signal.SIGTERM)
    assert job.wait(PATIENCE) == 128 + signal.SIGTERM


@pytest.fixture(scope="module")
def rough(tmp_path_factory):
    """Trainings that fork, and whose workers are killed or end, all the time; one of them with a search that is killed again and again."""
    folder = tmp_path_factory.mktemp("rough")
    library = extension_make(folder)
    jobs = {}
    for kind in ("forks", "ends"):
        command = [PROGRAM, "run", "--quiet", "--where", "--record", folder / f"{kind}.db", "--", "/usr/bin/python3", STUB, kind, "50", library]
        jobs[kind] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(8):
        time.sleep(3)
        search = subprocess.Popen([PROGRAM, "where", str(jobs["ends"].pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)
        search.kill()
        search.wait()
    return {kind: (folder / f"{kind}.db", job.communicate()[0], job.returncode) for kind, job in jobs.items()}


@pytest.mark.parametrize("kind", ["forks", "ends"])
def test_forks_and_ends_in_every_stage_harm_nothing(rough, kind):
    recording, output, code = rough[kind]
    assert (output, code) == ("0\n", 0), "no worker came to harm, and no child was traced"
    with sqlite3.connect(recording) as db:
        stages = {stage for (stage,) in db.execute("SELECT stage FROM site_window")}
    assert stages >= ({1, 2, 3} if kind == "forks" else {1}), stages


@pytest.mark.long
def test_no_process_can_look(here):
    """The command has no trainer: that is said, and not that nothing leaks."""
    job = subprocess.Popen([PROGRAM, "run", "--quiet", "--", "sleep", "300"])
    try:
        refused(here.shmguard("where", child_of(job.pid)), 69, "no process could look")
    finally:
        job.terminate()
        job.wait()


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """In each interpreter of the machine, a training that has the shape of PyTorch's (where_stub.py)."""
    folder = tmp_path_factory.mktemp("everywhere")
    library = extension_make(folder)
    jobs = {}
    for version, python in INTERPRETERS.items():
        recording = folder / "{}.{}.db".format(*version)
        command = [PROGRAM, "run", "--quiet", "--where", "--record", recording, "--", python, STUB, "extension", "45", library]
        jobs[version] = recording, subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return {version: (recording, job.communicate()[0], job.returncode) for version, (recording, job) in jobs.items()}


@shares_trainings
@pytest.mark.parametrize("version", INTERPRETERS, ids=version_name)
def test_every_interpreter(everywhere, version):
    recording, output, code = everywhere[version]
    assert (output, code) == ("0\n", 0), "no worker came to harm"
    report = report_of(recording)
    if not (3, 9) <= version <= (3, 14):
        assert "sites" not in report
        return
    first = found(report)[0]
    line = next(number for number, text in enumerate(STUB.read_text().splitlines(), 1) if text.endswith("# leaks: extension"))
    assert (first["file"], first["line"], first["function"], first["kind"]) == (str(STUB), line, "load", "native")


@pytest.mark.long
@pytest.mark.parametrize("version", ["system", "2.13"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_named(kind, version, tmp_path):
    report = Training(python_of(version), kind, tmp_path, seconds=90).report()
    assert is_named(report, kind), report["sites"]


@pytest.mark.long
@pytest.mark.parametrize("version", ["system", "2.13"])
@pytest.mark.parametrize("kind", STEADY)
def test_no_line_is_named_for_steady_ones(kind, version, tmp_path):
    report = Training(python_of(version), kind, tmp_path, seconds=90).report()
    assert found(report) == [], report["sites"]
