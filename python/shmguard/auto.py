# SPDX-License-Identifier: Apache-2.0
"""import shmguard.auto, as the first line of a script: runs the script under the guard, as `shmguard run -- python script.py` would.

The process starts again, once, with the same arguments. Where that cannot be, one line says so, and the script continues as it is."""
import builtins
import os
import sys
from typing import List, Optional

from ._library import Error, is_guarded, program

ONCE = "SHMGUARD_AUTO"  # in the environment: this was done already, for this process or one above it


def _is_child() -> bool:
    """A worker of multiprocessing that imports the script again (spawn, forkserver)."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and (getattr(process.current_process(), "_inheriting", False) or
                                    getattr(process, "_parent_process", None) is not None)


def _arguments() -> List[str]:
    """The words with which Python was started."""
    if sys.version_info >= (3, 10):
        return list(sys.orig_argv)
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def _obstacle(arguments: List[str]) -> Optional[str]:
    """Why the process cannot start again, and what to do instead."""
    if hasattr(builtins, "get_ipython") and "ipykernel" in sys.modules:
        return "a notebook cannot start again under the guard; run \"shmguard kernel install\" once, and choose the kernel that it names"
    if hasattr(builtins, "get_ipython") or not sys.executable or len(arguments) < 2 or sys.argv[:1] in ([""], ["-"]):
        return "only a script can start again under the guard; for an interactive session: shmguard run -- python3"
    return None


def _again() -> None:
    arguments = _arguments()
    obstacle = _obstacle(arguments)
    if obstacle:
        raise Error(obstacle)
    path = program()
    os.environ[ONCE] = "1"
    for stream in sys.stdout, sys.stderr:
        if stream is not None:
            stream.flush()
    try:
        os.execv(path, [path, "run", "--", sys.executable] + arguments[1:])
    except OSError as error:
        raise Error("{}: {}".format(path, error.strerror))


if not (is_guarded() or os.environ.get(ONCE) or os.environ.get("SHMGUARD") == "off" or _is_child()):
    try:
        _again()
    except Error as _error:
        print("shmguard: {}".format(_error), file=sys.stderr)
