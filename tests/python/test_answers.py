# SPDX-License-Identifier: Apache-2.0
"""doctor, ps, explain, plan and loader_kwargs answer as the program does, and fail with its messages."""
import collections
import json
import os

import numpy
import pytest
from conftest import HERE, PROGRAM, run

import shmguard
from shmguard import _plan

BUS_ERROR = "RuntimeError: DataLoader worker (pid 12902) is killed by signal: Bus error.\n"
Pair = collections.namedtuple("Pair", "left right")


class Data:
    """As @dataclass makes it, which Python 3.6 does not have."""
    __dataclass_fields__ = {"x": None, "y": None}
    x, y = numpy.zeros(2, "int16"), 1


@pytest.mark.parametrize("sample, wanted", [
    (numpy.zeros((3, 4), "float32"), ["float32[3,4]"]),
    (numpy.float16(1), ["float16"]),
    (numpy.zeros((), "uint8"), ["uint8"]),
    ((1, 2.5, True), ["int64", "float64", "bool"]),
    ({"a": [1, {"b": numpy.zeros(5, "bool")}], "name": "x", "raw": b"y", "none": None}, ["int64", "bool[5]"]),
    (Pair(1, Pair("s", 2.0)), ["int64", "float64"]),
    (Data(), ["int16[2]", "int64"]),
    (numpy.zeros((0, 3)), []),
    ("text", []),
])
def test_fields(sample, wanted):
    assert list(_plan.fields(sample)) == wanted


def test_plan_is_the_programs():
    line = ["--sample", "float32[3,8]", "--sample", "int64", "--batch", 16, "--workers", 3, "--prefetch", 4, "--ranks", 2, "--shm", "64M", "--memory", "1G"]
    found = shmguard.plan((numpy.zeros((3, 8), "float32"), 7), batch_size=16, num_workers=3, prefetch_factor=4, ranks=2, shm="64M", memory="1G")
    assert found == json.loads(run(PROGRAM, "plan", "--json", *line).stdout)


def test_plan_of_many_fields():
    assert shmguard.plan([1] * 200, 4, 1)["loaders"][0]["segments"] == 200


def test_doctor_ps_and_explain():
    doctor = shmguard.doctor()
    assert doctor["schema"] == "shmguard.doctor/1" and doctor["environment"]["guard_ready"]
    assert os.getpid() in [process["pid"] for process in shmguard.ps(all=True)["processes"]]
    assert shmguard.explain(BUS_ERROR) == json.loads(run(PROGRAM, "explain", "--json", input=BUS_ERROR).stdout)
    assert shmguard.explain(b"\xff\x00 odd")["cause"]["id"] == shmguard.explain("\ud800 odd")["cause"]["id"] == "unknown"
    assert shmguard.version() in run(PROGRAM, "--version").stdout


@pytest.mark.parametrize("ask, line", [
    (lambda: shmguard.plan(1, batch_size=0, num_workers=1), ["plan", "--sample", "int64", "--batch", "0", "--workers", "1"]),
    (lambda: shmguard.plan(1, 8, 1, frobnicate=3), ["plan", "--frobnicate", "3"]),
    (lambda: shmguard.doctor(root="/nonexistent"), ["doctor", "--root", "/nonexistent"]),
    (lambda: shmguard.ps(pid=1 << 29), ["ps", "--pid", str(1 << 29)]),
])
def test_errors_are_the_programs(ask, line):
    done = run(PROGRAM, *line)
    with pytest.raises(shmguard.Error) as raised:
        ask()
    assert "shmguard: {}\n".format(raised.value) == done.stderr
    assert raised.value.code == done.returncode


@pytest.mark.parametrize("sample, said", [(object(), "a sample has a object"), ("text", "has no tensors")])
def test_samples_that_are_not_shared(sample, said):
    with pytest.raises(shmguard.Error, match=said):
        shmguard.plan(sample, 8, 1)


def test_loader_kwargs(monkeypatch):
    """With ever less room: all workers, fewer, a single one with prefetch_factor=1, none. Under the guard, memory is what counts."""
    room = {}
    monkeypatch.setattr(_plan, "ask", lambda name, options, real=_plan.ask: real(name, dict(room, **options)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(4))
    dataset = [(numpy.zeros((256, 1024), "float32"), 1)]  # 1 MiB, and batches of 8 MiB

    def settings(shm, memory="4G", workers=4):
        room.update(shm=shm, memory=memory)
        found = shmguard.loader_kwargs(dataset, 8, workers)
        assert found.reasons and found.pop("batch_size") == 8
        return found
    assert settings("1G") == {"num_workers": 4, "prefetch_factor": 2}
    assert settings("1G", workers=16) == {"num_workers": 4, "prefetch_factor": 2}
    assert settings("64M") == {"num_workers": 2, "prefetch_factor": 2}
    assert settings("26M") == {"num_workers": 1, "prefetch_factor": 1}
    assert settings("16M") == {"num_workers": 0}
    assert settings("16M", workers=0) == {"num_workers": 0}
    monkeypatch.setattr(_plan, "is_guarded", lambda: True)
    assert settings("16M") == {"num_workers": 4, "prefetch_factor": 2}
    assert settings("16M", memory="70M") == {"num_workers": 2, "prefetch_factor": 2}


def test_with_pytorch(torch_python):
    done = run(torch_python, "-W", "ignore", HERE / "torch_checks.py")
    assert done.returncode == 0, done.stderr


def test_any_python(any_python):
    """Imported without PyTorch and NumPy, with warnings as errors."""
    done = run(any_python, "-W", "error", HERE / "plain_checks.py")
    assert done.returncode == 0, done.stderr
