# SPDX-License-Identifier: Apache-2.0
"""Monitor marks a real recording, and warns of what the program forecasts."""
import json
import logging
import time

import pytest
from conftest import PROGRAM, run

import shmguard
from shmguard import _monitor

SCRIPT = """
import time, shmguard
with shmguard.Monitor(step_seconds=0.2) as monitor:
    for epoch in range(2):
        monitor.epoch(epoch)
        for _ in range(10):
            time.sleep(0.05)
            monitor.step()
    monitor.mark("done")
"""


def test_marks(tmp_path):
    done = run(PROGRAM, "record", "--quiet", "-o", tmp_path / "run.db", "--interval", "0.2", "--", "/usr/bin/python3", "-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    report = json.loads(run(PROGRAM, "report", "--json", tmp_path / "run.db").stdout)
    texts = [event["text"] for event in report["events"] if event["kind"] in ("epoch", "mark")]
    assert [text for text in texts if not text.startswith("step ")] == ["epoch 0", "epoch 1", "done"]
    assert 3 <= len(texts) - 3 <= 8 and texts[1] == "step 1"


def test_without_a_recording(monkeypatch, caplog):
    monkeypatch.delenv("SHMGUARD_RECORDING", raising=False)
    with caplog.at_level(logging.INFO, "shmguard"), shmguard.Monitor() as monitor:
        monitor.epoch(1)
        monitor.step()
    assert [record.levelname for record in caplog.records] == ["INFO"] and "shmguard run --record" in caplog.text


def test_a_recording_that_is_gone(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, "shmguard"), shmguard.Monitor(str(tmp_path / "none" / "run.db"), check_seconds=0.05) as monitor:
        monitor.mark("lost")
        time.sleep(0.3)
    assert "was lost" in caplog.text and "no forecast" in caplog.text


@pytest.mark.parametrize("forecast, warnings", [([None, 7200], 0), ([1200, 1100, 500, 400], 2), ([60], 1)])
def test_warnings(tmp_path, monkeypatch, caplog, forecast, warnings):
    """Once, and again when half of the time has passed."""
    answers = [{"verdicts": [{"id": "leak", "subject": {"pid": 7, "role": "worker"}, "exhausts_in": left, "evidence": "It grows."}]} for left in forecast]
    (tmp_path / "answers").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    fake = tmp_path / "shmguard"
    fake.write_text(f"#!/bin/sh\ncd {tmp_path} && head -n 1 answers && sed -i 1d answers\n")
    fake.chmod(0o755)
    monkeypatch.setattr(_monitor, "program", lambda: str(fake))
    monitor = shmguard.Monitor("run.db")
    for _ in forecast:
        monitor._check()
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warnings
    assert not warnings or "leak: at this rate the limit is reached in" in caplog.text and "It grows." in caplog.text
