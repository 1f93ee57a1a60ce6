# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: Debian's Chromium, driven by Playwright from .venv-playwright."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from conftest import PROGRAM, PROJECT

VENV = PROJECT / ".venv-playwright"
MAKE_RECORDING = pathlib.Path(PROGRAM).parent / "tests" / "show" / "make-recording"


def missing(why):
    """Skips the test, or fails it where the page is required."""
    if os.environ.get("SHMGUARD_REQUIRE_PAGE"):
        pytest.fail(f"the page is required here: {why}")
    pytest.skip(why)


def playwright():
    packages = next(VENV.glob("lib/python3*/site-packages"), None)
    if packages is None:
        missing("no Playwright: scripts/playwright sets it up")
    if str(packages) not in sys.path:
        sys.path.append(str(packages))
    return pytest.importorskip("playwright.sync_api")


def chromium():
    path = shutil.which("chromium")
    if path is None:
        missing("no Chromium: scripts/need browser installs it")
    return path


def make_recording(path, seconds, interval, workers):
    """Writes a recording of an artificial training that is always the same: see tests/show/made-job.h."""
    if not MAKE_RECORDING.exists():
        missing(f"{MAKE_RECORDING} is not built: meson configure -Dtests=enabled")
    subprocess.run([MAKE_RECORDING, path, str(seconds), str(interval), str(workers)], check=True, timeout=120)
    return path


def has_page():
    """Whether the program was built with the page."""
    done = subprocess.run([PROGRAM, "report", "/nonexistent", "-o", "/nonexistent/page.html"], capture_output=True, timeout=30, check=False)
    return done.returncode != 69
