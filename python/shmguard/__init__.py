# SPDX-License-Identifier: Apache-2.0
"""shmguard keeps PyTorch training alive. The program does the work; this package has its answers for Python, and shared data for workers."""
from ._library import Error, doctor, explain, is_guarded, program, ps, version
from ._monitor import Monitor
from ._plan import LoaderKwargs, loader_kwargs, plan
from ._shared import SharedDict, SharedList

__all__ = ["Error", "LoaderKwargs", "Monitor", "SharedDict", "SharedList", "doctor", "explain", "is_guarded", "loader_kwargs", "plan", "program",
           "ps", "version"]
