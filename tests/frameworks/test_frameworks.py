# SPDX-License-Identifier: Apache-2.0
"""Real frameworks give the same batches and learn the same under the guard in a /dev/shm of 64 MB as plainly with room.

jobs/ has a script for each. It prints a digest of every batch and of what was learned; the lines must be the same to the bit.
"""

import functools
import json
import os
import pathlib
import subprocess

import pytest
from e2e_conftest import PROGRAM, PROJECT, mount_namespace, needs_root, wait_until

JOBS = pathlib.Path(__file__).resolve().parent / "jobs"
VENV = PROJECT / ".venv-frameworks"
BROKEN = pathlib.Path(PROGRAM).resolve().parent / "tests" / "guard" / "libshmguard-broken.so"
SECONDS = 180

NEWER = VENV / "bin" / "python"  # PyTorch 2.13
DEBIAN = VENV / "debian" / "bin" / "python"  # PyTorch 1.13: of torchvision for 2.13 there is no build without CUDA
FRAMEWORKS = {
    "lightning": NEWER,
    "lightning_ddp": NEWER,
    "transformers": NEWER,
    "accelerate": NEWER,
    "torch_geometric": NEWER,
    "webdataset": NEWER,
    "batchgenerators": NEWER,
    "tensordict": NEWER,
    "joblib": NEWER,
    "nbclient": NEWER,
    "torchdata": NEWER,
    "monai": NEWER,
    "datasets": NEWER,
    "hogwild": NEWER,
    "torchvision": DEBIAN,
    "timm": DEBIAN,
}
MODULES = {"lightning_ddp": "lightning", "hogwild": "torch"}

pytestmark = needs_root


def command_of(name, strategy):
    return [FRAMEWORKS[name], "-W", "ignore", JOBS / f"with_{name}.py", strategy]


def environment():
    """Nothing of another run, no network, and one thread a process, so that sums come out the same."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "SHMGUARD", "PYTHON"))}
    return {**mine, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def need(name):
    python, module = FRAMEWORKS[name], MODULES.get(name, name)
    if not os.access(python, os.X_OK):
        pytest.skip(f"no {python}: scripts/frameworks makes one")
    look = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    if subprocess.run([python, "-c", look], check=False).returncode != 0:
        why = (VENV / "not-installed").read_text() if (VENV / "not-installed").exists() else ""
        pytest.skip(next((line for line in why.splitlines() if line.startswith(f"{module}:")), f"{module} is not installed"))


def words_of(done):
    return done.stdout.decode() + done.stderr.decode()[-4000:]


@functools.lru_cache(maxsize=None)
def plain(name):
    """What comes out without us. It does not depend on the strategy."""
    with mount_namespace("size=4g") as machine:
        done = machine.run(*command_of(name, "file_descriptor"), env=environment(), timeout=SECONDS)
    assert done.returncode == 0, words_of(done)
    return done.stdout.decode().splitlines()


def processes_of(machine):
    """Those that see this /dev/shm, but for the one that keeps it."""
    namespace = os.readlink(f"/proc/{machine.pid}/ns/mnt")
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns" / "mnt") == namespace and int(entry.name) != machine.pid:
                found.append((entry / "comm").read_text().strip())
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_same_as_plainly(small_shm, tmp_path, name, strategy):
    need(name)
    expected = plain(name)
    assert len(expected) >= 10
    report = tmp_path / "report.json"
    done = small_shm.shmguard("run", "--quiet", "--report", report, "--", *command_of(name, strategy), env=environment(),
                              timeout=SECONDS)
    assert done.returncode == 0, words_of(done)
    assert done.stdout.decode().splitlines() == expected, words_of(done)

    guard = json.loads(report.read_text())["guard"]
    assert guard["active"]
    assert guard["segments_created"] > 0
    assert guard["segments_reused"] > 0
    assert guard["fallbacks"] == 0, "every tensor was kept out of /dev/shm"
    assert list(small_shm.shm.iterdir()) == []
    wait_until(lambda: not processes_of(small_shm), 10, f"processes end: {processes_of(small_shm)}")


def test_plainly_64_mb_are_too_few(small_shm):
    """What the tests above compare needs more than 64 MB: without the guard it dies there."""
    need("lightning")
    done = small_shm.run_plainly(*command_of("lightning", "file_descriptor"), env=environment())
    assert done.returncode != 0
    assert b"shared memory" in done.stderr, words_of(done)


def test_the_comparison_can_fail(private_shm):
    """A library that is broken on purpose, and issues segments that are in use, changes the lines."""
    need("accelerate")
    if not BROKEN.exists():
        pytest.skip("no broken library: meson configure build -Dtests=enabled")
    done = private_shm.run(*command_of("accelerate", "file_descriptor"), env={**environment(), "LD_PRELOAD": str(BROKEN)})
    assert len(done.stdout.splitlines()) > 1, words_of(done)
    assert done.stdout.decode().splitlines() != plain("accelerate")
