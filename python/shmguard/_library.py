# SPDX-License-Identifier: Apache-2.0
"""The program and the C library that belong to this package, and the questions that the library answers."""
import ctypes
import functools
import json
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

LIBRARY = "libshmguard.so"
VERSION = ".1"  # of its functions
FIRST_ERROR = 64  # of the exit codes: below are answers


class Error(Exception):
    """What is wrong, in one line, as the program says it. `code` is its exit code."""

    def __init__(self, message: str, code: int = 70) -> None:
        super().__init__(message)
        self.code = code


def program() -> str:
    """The path of the shmguard program that was installed together with this package."""
    directory = os.path.dirname(os.path.abspath(__file__))
    # Environments differ in how deep packages lie, but all have a bin above them; with pip's --target it is beside them.
    while directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
        for place in "bin", "build":  # the latter in a source tree
            path = os.path.join(directory, place, "shmguard")
            if os.path.isfile(path):
                return path
    raise Error("the shmguard program is missing; reinstall the package: pip install --force-reinstall shmguard", 69)


def _places() -> Iterator[str]:
    """Where the library may be: beside this file in a wheel, beside the program in a build tree, or where the linker looks."""
    yield os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARY)
    try:
        directory = os.path.dirname(os.path.realpath(program()))
        yield os.path.join(directory, LIBRARY + VERSION)
        yield os.path.join(os.path.dirname(directory), "lib", LIBRARY + VERSION)
    except Error:
        pass
    yield LIBRARY + VERSION


@functools.lru_cache(maxsize=None)
def _library() -> ctypes.CDLL:
    why = ""
    for place in _places():
        if "/" in place and not os.path.isfile(place):
            continue
        try:
            library = ctypes.CDLL(place)
            break
        except OSError as error:
            why = str(error)
    else:
        raise Error("the library of shmguard cannot be loaded: {}".format(why), 69)
    text = ctypes.POINTER(ctypes.c_void_p)
    for name in "doctor", "ps", "plan":
        getattr(library, "shmguard_" + name).argtypes = [ctypes.POINTER(ctypes.c_char_p), text, text]
    library.shmguard_explain.argtypes = [ctypes.c_char_p, ctypes.c_size_t, text, text]
    library.shmguard_free.argtypes = [ctypes.c_void_p]
    library.shmguard_free.restype = None
    library.shmguard_version.restype = ctypes.c_char_p
    return library


def version() -> str:
    found: bytes = _library().shmguard_version()
    return found.decode()


def _take(pointer: ctypes.c_void_p) -> str:
    text = ctypes.string_at(pointer.value).decode() if pointer.value else "out of memory"
    _library().shmguard_free(pointer)
    return text


def _ask(name: str, *arguments: Any) -> Dict[str, Any]:
    answer, error = ctypes.c_void_p(), ctypes.c_void_p()
    code: int = getattr(_library(), "shmguard_" + name)(*arguments, ctypes.byref(answer), ctypes.byref(error))
    if code >= FIRST_ERROR:
        raise Error(_take(error), code)
    found: Dict[str, Any] = json.loads(_take(answer))
    return found


def words(options: Dict[str, Any]) -> List[str]:
    """Keyword arguments as options of the program: per_gpu=2 becomes --per-gpu 2; None and False stand for none."""
    found: List[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                found.append(option)
            elif one is not None and one is not False:
                found += [option, str(one)]
    return found


def ask(name: str, options: Dict[str, Any]) -> Dict[str, Any]:
    """The answer of `shmguard NAME --json`."""
    given: Tuple[bytes, ...] = tuple(map(os.fsencode, words(options)))
    return _ask(name, (ctypes.c_char_p * (len(given) + 1))(*given, None))


def doctor(pid: Optional[int] = None, **options: Any) -> Dict[str, Any]:
    """What is wrong here, or soon will be, and what to do about it: `shmguard doctor`."""
    return ask("doctor", dict(options, pid=pid))


def ps(pid: Optional[int] = None, **options: Any) -> Dict[str, Any]:
    """Which process holds which shared memory: `shmguard ps`. all=True lists every process."""
    return ask("ps", dict(options, pid=pid))


def explain(text: Union[str, bytes]) -> Dict[str, Any]:
    """What happened, from a traceback or log: `shmguard explain`."""
    log = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    return _ask("explain", log, len(log))


def is_guarded() -> bool:
    """Whether this process runs under the guard of `shmguard run`."""
    if not os.environ.get("SHMGUARD_SOCKET") or os.environ.get("SHMGUARD_ONLY_WITNESS") or os.environ.get("SHMGUARD") == "off":
        return False
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return any("/libshmguard-preload.so" in line for line in maps)
    except OSError:
        return False
