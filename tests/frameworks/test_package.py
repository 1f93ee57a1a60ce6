# SPDX-License-Identifier: Apache-2.0
"""The Python package with what people train with: callbacks of Lightning and transformers, and Jupyter's kernels."""

import contextlib
import sqlite3

import pytest
from e2e_conftest import PROGRAM, PROJECT, Machine
from test_frameworks import JOBS, NEWER, environment, need, words_of

MARKS = ["epoch 0", "step 1", "step 2", "step 3", "epoch 1", "step 4", "step 5", "step 6"]


def with_package(**more):
    return {**environment(), "PYTHONPATH": str(PROJECT / "python"), **more}


@pytest.mark.parametrize("name, job", [("lightning", ["marks_lightning.py", "lightning.pytorch"]),
                                       ("lightning", ["marks_lightning.py", "pytorch_lightning"]),
                                       ("transformers", ["marks_transformers.py"])])
def test_callbacks(tmp_path, name, job):
    need(name)
    done = Machine().run(PROGRAM, "run", "--quiet", "--record", tmp_path / "run.db", "--", NEWER, "-W", "ignore", JOBS / job[0], *job[1:],
                         env=with_package(), timeout=180)
    assert done.returncode == 0, words_of(done)
    with contextlib.closing(sqlite3.connect(tmp_path / "run.db")) as recording:
        assert [text for text, in recording.execute("SELECT text FROM mark ORDER BY id")] == MARKS


def test_kernel(tmp_path):
    """A guarded notebook can be interrupted and restarted; an unguarded one says how to get a guarded one."""
    need("nbclient")
    mine = with_package(JUPYTER_DATA_DIR=str(tmp_path), PATH=f"{NEWER.parent}:/usr/bin:/bin")
    done = Machine().run(PROGRAM, "kernel", "install", env=mine)
    assert done.returncode == 0, words_of(done)
    done = Machine().run(NEWER, JOBS / "notebook.py", "shmguard", env=mine, timeout=180)
    assert done.stdout.decode().splitlines() == ["guarded: True", "ok", "KeyboardInterrupterror", "1", "ok", "NameErrorerror"], words_of(done)
    done = Machine().run(NEWER, JOBS / "notebook.py", "python3", env=mine, timeout=180)
    assert "guarded: False\n" in done.stdout.decode() and "shmguard kernel install" in done.stdout.decode(), words_of(done)
