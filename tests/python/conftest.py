# SPDX-License-Identifier: Apache-2.0
"""The Python package as it is installed: beside a bin with the program of the build."""
import atexit
import glob
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
PROGRAM = os.environ.get("SHMGUARD", str(PROJECT / "build" / "shmguard"))
# With PyTorch: the distribution's, and the newest.
WITH_TORCH = {"system": "/usr/bin/python3", "2.13": str(PROJECT / ".venv-torch-2.13" / "bin" / "python")}
EVERY_PYTHON = [sys.executable, *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))]

_prefix = tempfile.TemporaryDirectory()
atexit.register(_prefix.cleanup)
PREFIX = pathlib.Path(_prefix.name)
(PREFIX / "bin").mkdir()
(PREFIX / "bin" / "shmguard").symlink_to(PROGRAM)
(PREFIX / "shmguard").symlink_to(PROJECT / "python" / "shmguard")
sys.path.insert(0, str(PREFIX))


def environment(**more):
    """Nothing of a run around the tests."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "SHMGUARD", "PYTHON"))}
    return {**mine, "PYTHONPATH": str(PREFIX), **more}


def run(*command, env=None, **options):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False, timeout=120,
                          env=env or environment(), **options)


@pytest.fixture(params=list(WITH_TORCH))
def torch_python(request):
    path = WITH_TORCH[request.param]
    if not os.access(path, os.X_OK):
        pytest.skip(f"no PyTorch {request.param}: run scripts/torch-{request.param}")
    return path


@pytest.fixture(params=EVERY_PYTHON)
def any_python(request):
    return request.param
