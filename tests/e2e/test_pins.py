# SPDX-License-Identifier: Apache-2.0
"""Batches that a GPU reads where their worker wrote them: PyTorch's own loader with a fake GPU."""

import json
import re
import subprocess

import pytest

from conftest import BUILD, PROGRAM, PROJECT, PYTHONS

FAKE = PROJECT / "tests" / "guard" / "fake_gpu.py"
COPY = BUILD / "tests" / "guard" / "libtorch_copy.so"

pytestmark = pytest.mark.skipif("sanitize" in str(PROGRAM),
                                reason="an instrumented library cannot be preloaded into a plain program")


def load(python, *words, options=(), tmp_path=None):
    """The number of wrong batches, the number of batches pinned in place, and the pinned bytes in the report."""
    report = tmp_path / "report.json"
    done = subprocess.run([PROGRAM, "run", "--quiet", "--report", report, *options, "--", python, "-W", "ignore", FAKE, COPY, *words],
                          stdout=subprocess.PIPE, text=True, check=False)
    wrong, pinned = map(int, re.search(r"(\d+) wrong, (\d+) pinned", done.stdout).groups())
    return wrong, pinned, json.loads(report.read_text())["guard"]["pinned_bytes"]


def test_batches_are_pinned_in_place(python, tmp_path):
    wrong, pinned, told = load(python, tmp_path=tmp_path)
    assert wrong == 0
    assert pinned > 100
    assert told == pinned << 20


def test_new_workers_keep_what_is_registered(python, tmp_path):
    wrong, pinned, _ = load(python, "--batches", "20", "--epochs", "6", tmp_path=tmp_path)
    assert wrong == 0
    assert pinned > 95  # only the first epoch begins with segments that are not registered yet


def test_what_the_dataset_keeps_is_not(python, tmp_path):
    assert load(python, "--cached", "--batches", "60", tmp_path=tmp_path) == (0, 0, 0)


@pytest.mark.parametrize("way", [[], ["--by-name"]])
def test_what_is_sent_twice_is_two(python, way, tmp_path):
    """pin_memory() returns a copy: writing to it must not change the next batch."""
    wrong, _, _ = load(python, "--twice", *way, tmp_path=tmp_path)
    assert wrong == 0


def test_the_budget_is_kept(tmp_path):
    """Segments that wait for their copies are released while the trainer sleeps. Only their worker can take them back,
    not the supervisor. A rescue passes the budget by a batch: the one worker may starve on a busy machine."""
    wrong, pinned, _ = load(PYTHONS["system"], "--workers", "1", "--delay", "2", options=("--budget", "2.5M"), tmp_path=tmp_path)
    assert wrong == 0
    assert pinned > 20
    guard = json.loads((tmp_path / "report.json").read_text())["guard"]
    assert guard["bytes_peak"] <= (3 if guard["rescues"] == 0 else 4) << 20


def test_pin_off(tmp_path):
    assert load(PYTHONS["system"], "--batches", "60", options=("--pin", "off"), tmp_path=tmp_path) == (0, 0, 0)


@pytest.mark.timed
def test_nobody_waits_for_copies():
    """Checks the tests above with a library that is broken on purpose: they must notice."""
    library = BUILD / "tests" / "guard" / "libshmguard-untracked.so"
    done = subprocess.run(["env", f"LD_PRELOAD={library}", PYTHONS["system"], "-W", "ignore", FAKE, COPY], stdout=subprocess.PIPE,
                          text=True, check=False)
    assert done.returncode == 1
    assert int(re.search(r"(\d+) wrong", done.stdout).group(1)) > 0
