# SPDX-License-Identifier: Apache-2.0
"""Datasets made immortal before workers are forked: what is frozen and what is not, in every Python of this machine that has immortal
objects, and how much private memory workers gain, with PyTorch."""

import json
import os
import re
import subprocess

import pytest

from conftest import MIB, PROGRAM, PROJECT, PYTHONS, SANITIZED, control_group
from test_lane import INTERPRETERS, LIBRARY, version_name

STUB = PROJECT / "tests" / "guard" / "freeze_stub.py"
JOB = PROJECT / "tests" / "e2e" / "freeze_job.py"
IMMORTAL = [version for version in INTERPRETERS if (3, 12) <= version <= (3, 14)]
MORTAL = [version for version in INTERPRETERS if (3, 8) <= version < (3, 12)]

pytestmark = pytest.mark.skipif(SANITIZED, reason="an instrumented library cannot be preloaded into a plain program")


def each(versions):
    if not versions:
        return pytest.mark.skip(reason="no Python of 3.12 to 3.14 is installed (pyenv's are found, too)")
    return pytest.mark.parametrize("version", versions, ids=version_name)


def stub(version, case, *options, code=0, **more):
    done = subprocess.run([INTERPRETERS[version], *options, STUB, case], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          env={**os.environ, "LD_PRELOAD": str(LIBRARY), **more}, check=False)
    assert done.returncode == code and not re.search("Error|Fatal|Warning: ", done.stderr), done.stderr[-3000:]
    return done.stdout.splitlines()


FOUND = {
    "code_of_program": ["[] True"],
    "shapes": ["ring True True deep True True shared True True False back False True open False True"],
    "use": ["True True True True a text, number 0 True True True", "1000 a text, number 0 more plain 7 True True False", "1000"],
    "isolation": ["0 0 1000 a text, number 1 plain 1"],
    "rebuilt": ["0 True", "1 False", "2 False", "3 False"],
    "filled": ["1"] * 4,
    "replaced": ["True True", "False False"],
    "refilled": ["False False"],
    "shuffled": ["True"],
    "lists": ["False True True", "False"],
    "growing": ["True False False"],
    "threads": ["True"],
    "forks": ["0", "0"],
    "interrupted": ["interrupted", "3000000 False True"],
    "others": ["{'a': 1, 'b': 2} 1 True True False False"],
    "owners": ["True False 101", "0 100 True True 1000"],
    "unpickled": ["1000 1 0 True True"],
    "graphs": ["done"],
    "changes": ["True True True"],
    "spawned": ["done"],
}
SLOW = {"interrupted", "shapes"}


@each(IMMORTAL)
@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] * (case in SLOW)) for case in FOUND])
def test_case(version, case):
    assert stub(version, case) == FOUND[case]


@each(IMMORTAL)
def test_what_is_plain(version):
    found = stub(version, "kinds")
    assert len(found) == 37 and all(line.endswith(" True") or line == "not its own True True 1" for line in found)


@each(IMMORTAL)
@pytest.mark.parametrize("options", [[], ["-X", "dev"]], ids=["plain", "dev"])
def test_end_of_the_program(version, options):
    """It ends with its own exit code, and the interpreter has nothing to say about objects that it cannot free."""
    assert stub(version, "ending", *options, code=3) == ["at exit 1000"]


@each(IMMORTAL)
def test_arrays_of_objects(version):
    has_numpy = subprocess.run([INTERPRETERS[version], "-c", "import numpy"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not has_numpy:
        pytest.skip("this Python has no numpy")
    assert stub(version, "arrays") == ["True True True True True True"]


def report_of(tmp_path, python, *command, options=(), **more):
    file = tmp_path / "report.json"
    done = subprocess.run([PROGRAM, "run", "--report", file, *options, "--", python, *map(str, command)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600, env={**os.environ, **more}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done, json.loads(file.read_text())["freeze"]


@each(IMMORTAL)
def test_report_and_summary(version, tmp_path):
    done, freeze = report_of(tmp_path, INTERPRETERS[version], STUB, "growing")
    assert freeze["active"] and freeze["why"] is None and freeze["objects"] >= 1 and freeze["bytes"] > 0 and freeze["left_bytes"] == 0
    assert "made immortal in" in done.stderr
    done, freeze = report_of(tmp_path, INTERPRETERS[version], STUB, "rebuilt")
    assert freeze["active"] and freeze["why"] == "dropped" and freeze["left_bytes"] == pytest.approx(freeze["bytes"], rel=0.01)
    assert "stay in memory until the process ends" in " ".join(done.stderr.split())


@each(IMMORTAL)
@pytest.mark.parametrize("way", ["option", "environment"])
def test_off(version, way, tmp_path):
    done, freeze = report_of(tmp_path, INTERPRETERS[version], STUB, "growing", options=["--freeze", "off"] * (way == "option"),
                             **({"SHMGUARD_FREEZE": "off"} if way == "environment" else {}))
    assert done.stdout == "False False False\n" and freeze == {"active": False, "why": "off", "objects": 0, "bytes": 0, "seconds": 0,
                                                               "left_bytes": 0}
    assert "immortal" not in done.stderr


@each(IMMORTAL[:1])
def test_other_start_methods(version, tmp_path):
    done, freeze = report_of(tmp_path, INTERPRETERS[version], STUB, "spawned")
    assert not freeze["active"] and freeze["why"] == "start-method" and "immortal" not in done.stderr


@pytest.mark.parametrize("version", MORTAL[-1:], ids=version_name)
def test_without_immortal_objects(version, tmp_path):
    done, freeze = report_of(tmp_path, INTERPRETERS[version], STUB, "growing")
    assert done.stdout == "False False False\n" and freeze["why"] == "python" and "immortal" not in done.stderr


@each(IMMORTAL[:1])
@pytest.mark.long
@pytest.mark.parametrize("case, kind", [("speed", ""), ("ranks", ""), *(("much", kind) for kind in ("raw", "set", "keys", "words", "ring"))])
def test_quarter_of_the_memory(version, case, kind, here, tmp_path):
    """Of a control group with 256 MiB."""
    file = tmp_path / "report.json"
    with control_group(here, limit=256 * MIB) as (machine, _):
        done = machine.run(PROGRAM, "run", "--report", file, "--", INTERPRETERS[version], STUB, case, stdout=subprocess.PIPE, text=True,
                           stderr=subprocess.PIPE, env={**os.environ, "OBJECTS": "1750000" if case == "speed" else "1000000", "KIND": kind})
    freeze = json.loads(file.read_text())["freeze"]
    assert done.stdout == "False\n" and freeze["why"] == "limit" and freeze["bytes"] <= 64 * MIB, (done, freeze)
    assert kind == "ring" or freeze["bytes"] > 56 * MIB
    assert "limited to a quarter of the memory" in " ".join(done.stderr.split())


# --- With PyTorch ---


def torch_pythons():
    """Those with immortal objects and PyTorch: the system's, and the one in .venv-freeze."""
    ask = "import sys, importlib.util as u; print(*sys.version_info[:2], bool(u.find_spec('torch')), bool(u.find_spec('pandas')))"
    found = {}
    for path in [*PYTHONS.values(), str(PROJECT / ".venv-freeze" / "bin" / "python")]:
        done = subprocess.run([path, "-c", ask], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True) \
            if os.access(path, os.X_OK) else None
        major, minor, has_torch, has_pandas = done.stdout.split() if done and done.returncode == 0 else (0, 0, "False", "False")
        if (3, 12) <= (int(major), int(minor)) <= (3, 14) and has_torch == "True":
            found[f"{major}.{minor}"] = path, has_pandas == "True"
    return found


TORCHES = torch_pythons()
with_torch = pytest.mark.parametrize("torch", TORCHES) if TORCHES else \
    pytest.mark.skip(reason="no PyTorch on Python 3.12 to 3.14: make a virtual environment .venv-freeze that has it")
# A worker gains some MiB that do not belong to the dataset, however large that is: with pandas about 9.
ITEMS = {"dicts": 300_000, "tuples": 500_000, "strings": 1_000_000, "dataclasses": 300_000, "nested": 300_000, "pandas": 3_000_000}


def job(tmp_path, torch, *arguments, options=()):
    done, freeze = report_of(tmp_path, TORCHES[torch][0], JOB, *arguments, options=options)
    return json.loads(done.stdout), freeze


@with_torch
@pytest.mark.parametrize("kind, workers", [pytest.param(kind, workers, marks=[] if (kind, workers) == ("dicts", 2) else [pytest.mark.long])
                                           for kind in ITEMS for workers in (2, 8)])
def test_private_memory_of_workers(torch, kind, workers, tmp_path):
    """At most 5% of what a worker gains plainly, and the same batches."""
    if kind == "pandas" and not TORCHES[torch][1]:
        pytest.skip("this Python has no pandas")
    plain, _ = job(tmp_path, torch, kind, ITEMS[kind], workers, 2, options=["--freeze", "off"])
    frozen, freeze = job(tmp_path, torch, kind, ITEMS[kind], workers, 2)
    print(f"{torch} {kind} {workers}: {plain['grown'] / MIB:.1f} MiB, frozen {frozen['grown'] / MIB:.1f} MiB, {freeze}")
    assert frozen["digest"] == plain["digest"]
    assert frozen["grown"] <= plain["grown"] * 0.05, (plain, frozen)
    assert not any(plain["frozen"]) and all(frozen["frozen"])


@with_torch
@pytest.mark.long
def test_dataset_rebuilt_every_epoch(torch, tmp_path):
    """The first one stays; nothing is added."""
    plain, _ = job(tmp_path, torch, "dicts", 100_000, 2, 6, "--rebuild", options=["--freeze", "off"])
    frozen, freeze = job(tmp_path, torch, "dicts", 100_000, 2, 6, "--rebuild")
    assert frozen["digest"] == plain["digest"] and frozen["frozen"] == [True] + [False] * 5
    assert freeze["why"] == "dropped" and freeze["left_bytes"] == freeze["bytes"]
    assert frozen["own"] - plain["own"] < 1.3 * freeze["bytes"] + 16 * MIB
