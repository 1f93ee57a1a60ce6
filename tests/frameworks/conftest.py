# SPDX-License-Identifier: Apache-2.0
"""The machines of the end-to-end tests, for the tests of frameworks."""

import importlib.util
import pathlib
import sys

END_TO_END = pathlib.Path(__file__).resolve().parent.parent / "e2e"

# Both folders have a conftest.py, so this one is loaded under a name of its own.
sys.path.insert(0, str(END_TO_END))
_spec = importlib.util.spec_from_file_location("e2e_conftest", END_TO_END / "conftest.py")
sys.modules["e2e_conftest"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["e2e_conftest"])

from e2e_conftest import private_shm, pytest_configure, small_shm  # noqa: E402, F401
