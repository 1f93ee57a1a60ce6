# SPDX-License-Identifier: Apache-2.0
"""Code that remembers a shared tensor is not fooled when its segment is reused (docs/identity.md). identity.py has the cases."""

import pathlib

import pytest

from conftest import SANITIZED, python_of, torch_version

SCRIPT = pathlib.Path(__file__).with_name("identity.py")

pytestmark = pytest.mark.skipif(SANITIZED, reason="an instrumented library cannot be preloaded into a plain program")

# What PyTorch 1.13 lacks, with the oldest version known to have it.
NEWER = {"swapped": (2, 13), "emptied": (2, 6), "sparse_and_nested": (2, 6)}


def rounds(*cases):
    system = tuple(map(int, torch_version("system").split(".")[:2]))
    for case in cases:
        for version in ("system", "2.13"):
            if version == "2.13" or system >= NEWER.get(case, (1, 13)):
                yield pytest.param(case, version, id=f"{case}-{version}")


@pytest.mark.parametrize("case, version", rounds("shared_by_name", "swapped", "emptied", "sparse_and_nested", "exported",
                                                 "beside_files", "protected"))
def test_remembered(here, case, version):
    command = [python_of(version), "-W", "ignore", SCRIPT, case]
    # To rebuild a sparse tensor, PyTorch looks at all modules that it has: they may not be imported by that (site/sitecustomize.py).
    whole = ["env", "-u", "PYTHONPATH"] if case == "sparse_and_nested" else []
    guarded = here.run(*whole, here.program, "run", "--quiet", "--", *command)
    assert (guarded.returncode, guarded.stdout) == (0, b"wrong: 0\n"), guarded.stderr.decode()
