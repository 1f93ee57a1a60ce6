# SPDX-License-Identifier: Apache-2.0
"""Every way in which a training dies, provoked for real. The cause that `run` reports must be right, or unknown."""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

from conftest import HERE, PATIENCE, PROGRAM, PYTHONS, cells, children, control_group, needs_root, python_of

CRASH = HERE / "crash.py"
MIB = 1 << 20

pytestmark = pytest.mark.skipif("sanitize" in str(PROGRAM),
                                reason="an instrumented library cannot be preloaded into a plain program")


def start(machine, python, tmp_path, way, *arguments, options=(), **kwargs):
    return machine.popen(machine.program, "run", "--report", tmp_path / "report.json", *options, "--", python, "-W", "ignore",
                         CRASH, way, *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)


def finish(job, tmp_path):
    out, err = job.communicate(timeout=PATIENCE)
    report = json.loads((tmp_path / "report.json").read_text())
    report["terminal"] = err.decode()
    report["out"] = out.decode()
    return report


def crash(machine, python, tmp_path, way, *arguments, **kwargs):
    return finish(start(machine, python, tmp_path, way, *arguments, **kwargs), tmp_path)


def expect(report, cause, *words, confidence=0.5):
    found = report["cause"]
    assert found["id"] == cause, (found, report["terminal"])
    assert found["confidence"] >= confidence, found
    everything = json.dumps(found, ensure_ascii=False)
    for word in words:
        assert word in everything, (word, everything)
    # The terminal shows the cause near the end.
    if cause != "ok":
        last = report["terminal"].strip().splitlines()[-12:]
        assert any(cause in line for line in last), last


def test_ok(here, python, tmp_path):
    report = crash(here, python, tmp_path, "none", "--step", 0.2)
    expect(report, "ok")
    assert report["peaks"]["processes"] >= 3 and report["peaks"]["rss"] > 50 * MIB


@needs_root
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_small_mount(small_shm, python, tmp_path, strategy):
    report = crash(small_shm, python, tmp_path, "none", "--bytes", 32 * MIB, "--strategy", strategy, options=["--no-guard"])
    expect(report, "shm-exhausted", "64.0 MiB")


@pytest.mark.parametrize("way", ["none", "feeder"])
def test_larger_than_the_budget(here, python, tmp_path, way):
    report = crash(here, python, tmp_path, way, "--bytes", 32 * MIB, options=["--budget", "16M"])
    expect(report, "budget-exceeded")
    assert report["guard"]["refused"] > 0
    assert "No space left on device" in report["terminal"]


@needs_root
@pytest.mark.outside  # the kernel log contains the pids of the initial namespace
@pytest.mark.parametrize("way", ["eats", "worker-eats"])
def test_control_group(here, python, tmp_path, way):
    with control_group(here, 600 * MIB) as (machine, _):
        report = crash(machine, python, tmp_path, way)
    expect(report, "cgroup-oom", confidence=0.8)


@pytest.mark.parametrize("way", ["worker-killed"])
def test_worker_killed(here, python, tmp_path, way):
    report = crash(here, python, tmp_path, way)
    expect(report, "killed", "SIGKILL")


@cells("version, whom, signo", [("system", "trainer", signal.SIGKILL), ("2.13", "trainer", signal.SIGTERM),
                               ("system", "worker", signal.SIGTERM), ("2.13", "worker", signal.SIGKILL)],
       PYTHONS, ("trainer", "worker"), (signal.SIGKILL, signal.SIGTERM))
def test_killed_from_outside(here, tmp_path, version, whom, signo):
    job = start(here, python_of(version), tmp_path, "waits", "--batches", 1000)
    assert job.stdout.readline() == b"training\n"
    trainer = children(job.pid)[0]
    pid = trainer if whom == "trainer" else next(pid for pid in children(trainer))
    os.kill(pid, signo)
    report = finish(job, tmp_path)
    expect(report, "killed", signo.name)
    assert report["cause"]["pid"] == pid


@pytest.mark.parametrize("way", ["segfault", "worker-segfault"])
def test_segfault(here, python, tmp_path, way):
    report = crash(here, python, tmp_path, way)
    expect(report, "segfault", confidence=0.8)
    if python.startswith("/usr"):
        assert "crash.py" in json.dumps(report), "the Python stack must be in the report"


@pytest.mark.parametrize("way", ["cut-short", "worker-cut-short"])
def test_file_cut_short(here, python, tmp_path, way):
    report = crash(here, python, tmp_path, way)
    expect(report, "bus-error-file", confidence=0.7)
    died = next(process for process in report["processes"] if process["pid"] == report["cause"]["pid"])
    assert (died["fault"]["place"], died["fault"]["offset"], died["fault"]["file_size"]) == ("file", 8 * MIB, MIB)
    assert died["last"]["rss"] > 0 and died["last"]["threads"] > 0


@pytest.mark.parametrize("way", ["getitem", "collate", "main"])
def test_python_error(here, python, tmp_path, way):
    report = crash(here, python, tmp_path, way)
    words = {"getitem": "sample 12 is broken", "collate": "stack expects", "main": "no such layer"}
    expect(report, "python-error", words[way], confidence=0.7)
    assert report["exit"]["code"] == 1


@pytest.mark.timed
def test_hung_worker(here, python, tmp_path):
    report = crash(here, python, tmp_path, "worker-hangs", "--timeout", 3)
    expect(report, "worker-hang", confidence=0.7)


@cells("version, guard", [("system", "guard"), ("2.13", "no-guard")], PYTHONS, ("guard", "no-guard"))
def test_descriptors(here, tmp_path, version, guard):
    python = python_of(version)
    options = ["--no-guard"] if guard == "no-guard" else ["--lane", "off"]  # on the lane, small tensors need no descriptors
    limited = here.within("prlimit", "--nofile=160:160")
    report = crash(limited, python, tmp_path, "none", "--keep", "--batches", 400, "--bytes", 64 * 1024, options=options)
    expect(report, "fd-exhausted")


@cells("version, guard", [("system", "guard"), ("2.13", "no-guard")], PYTHONS, ("guard", "no-guard"))
def test_mappings(here, tmp_path, version, guard):
    python = python_of(version)
    options = ["--no-guard"] if guard == "no-guard" else []
    report = crash(here, python, tmp_path, "maps", "--keep", options=options)
    expect(report, "maps-exhausted")


@needs_root
@pytest.mark.timed
def test_segments_deleted(private_shm, python, tmp_path):
    job = start(private_shm, python, tmp_path, "waits", "--strategy", "file_system", "--batches", 400,
                options=["--no-guard"])
    assert job.stdout.readline() == b"training\n"
    deadline = time.monotonic() + 20
    while job.poll() is None and time.monotonic() < deadline:
        for path in private_shm.shm.glob("torch_*"):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        time.sleep(0.001)
    report = finish(job, tmp_path)
    expect(report, "segments-deleted")


@cells("version, way", [("system", "exit"), ("2.13", "abort"), ("system", "worker-abort")], PYTHONS, ("exit", "abort", "worker-abort"))
def test_what_is_not_known_is_unknown(here, tmp_path, version, way):
    report = crash(here, python_of(version), tmp_path, way)
    assert report["cause"]["id"] == "unknown", report["cause"]
