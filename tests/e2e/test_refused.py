# SPDX-License-Identifier: Apache-2.0
"""Shared memory that is refused, or never released: what happens to the batches, and whether the user is told."""

import json

import pytest

from conftest import HERE, MIB, PROGRAM

pytestmark = pytest.mark.skipif("sanitize" in str(PROGRAM),
                                reason="an instrumented library cannot be preloaded into a plain program")


def lose(here, python, tmp_path, way, *options, budget="5M", size=()):
    done = here.shmguard("run", "--budget", budget, "--report", tmp_path / "r", *options, "--", python, "-W", "ignore",
                         HERE / "lose.py", way, *size)
    summary = done.stderr.decode()[done.stderr.decode().find("shmguard: "):]
    return done, summary, json.loads((tmp_path / "r").read_text())


@pytest.mark.parametrize("way", ["here", "loader", "feeder"])
def test_a_command_that_asks_for_less_is_left_alone(here, one_python, tmp_path, way):
    done, summary, report = lose(here, one_python, tmp_path, way)
    assert done.returncode == 0 and b"made " in done.stdout, (done, report)
    assert report["cause"]["id"] == "ok" and report["exit_code"] == 0 and report["guard"]["refused"] > 0
    assert "refused" in summary.splitlines()[0] and "continued" in " ".join(summary.split()), summary
    assert any(refusal["told"] for refusal in report["guard"]["refusals"]) == (way == "feeder")


@pytest.mark.parametrize("way", ["queue", "iterable", "forget"])
def test_a_lost_batch_is_told(here, one_python, tmp_path, way):
    done, summary, report = lose(here, one_python, tmp_path, way)
    assert done.returncode == 1, (done, report)
    assert report["exit"] == {"code": 0, "signal": None} and report["exit_code"] == 1
    assert report["cause"]["id"] == "budget-exceeded" and report["cause"]["confidence"] >= (0.5 if way == "forget" else 0.9)
    told = " ".join(summary.split())
    for words in ("refused", "16.0 MiB", "whole budget of 5.0 MiB", "shmguard exits with 1", "Raise --budget"):
        assert words in told, (words, told)
    assert sum(refusal["unheard"] for refusal in report["guard"]["refusals"]) == (0 if way == "forget" else 2)


def test_the_exception_that_follows_is_not_the_cause(here, one_python, tmp_path):
    done, summary, report = lose(here, one_python, tmp_path, "index")
    assert done.returncode == 1 and b"IndexError" in done.stderr
    assert report["cause"]["id"] == "budget-exceeded" and report["cause"]["confidence"] >= 0.8
    assert "batches were lost" in summary


def test_the_next_attempt_takes_less(here, one_python, tmp_path):
    """An attempt that lost batches has failed, even if the command exited with 0."""
    done, summary, report = lose(here, one_python, tmp_path, "queue", "--retry", "2", "--degrade", "mib=16,4", size=["{mib}"])
    assert done.returncode == 0 and b"batches 3" in done.stdout, done
    assert [attempt["cause"]["id"] for attempt in report["attempts"]] == ["budget-exceeded", "ok"]
    assert "mib=16" in summary and "4" in summary


KEEPER = """
import torch
from torch.utils.data import DataLoader
class Data:
    def __len__(self): return 12
    def __getitem__(self, i): return torch.full((1 << 21,), float(i))
kept = [batch for batch in DataLoader(Data(), batch_size=1, num_workers=2)]
print("kept", len(kept))
"""


@pytest.mark.timed
def test_a_crawl_says_who_keeps_what(here, one_python, tmp_path):
    """60 MiB have room for seven batches, and the trainer keeps all of them. Each further batch must wait for a rescue."""
    done = here.shmguard("run", "--budget", "60M", "--report", tmp_path / "r", "--", one_python, "-W", "ignore", "-c", KEEPER)
    assert done.returncode == 0 and b"kept 12" in done.stdout, done
    guard = json.loads((tmp_path / "r").read_text())["guard"]
    lines = done.stderr.decode().splitlines()
    told = [line for line in lines if "waiting, and no memory was released" in line]
    assert len(told) == 1 and "kept by the command (pid " in told[0] and "The budget is 60.0 MiB." in told[0] and "--budget" in told[0], lines
    end = " ".join(done.stderr.decode().split())
    assert "5 batches passed the budget of 60.0 MiB" in end and "--budget 96m (estimated)" in end, end
    assert guard["rescues"] == 5 and guard["queued_seconds"] > 5 and guard["enough_bytes"] == 96 * MIB
    assert guard["keeper"]["role"] == "trainer" and 60 * MIB <= guard["keeper"]["bytes_most"] <= 96 * MIB
