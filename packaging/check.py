#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the files of a release: check.py PREFIX ARCHITECTURE GLIBC

They must start with that glibc and need nothing else, be hardened, the preload library must export what the guard interposes, and the C
library nothing but its functions."""
import os
import re
import subprocess
import sys

LIBRARIES = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1",
             "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64"}


def readelf(path, *options):
    return subprocess.run(["readelf", "--wide", *options, path], check=True, stdout=subprocess.PIPE, universal_newlines=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def versions(path):
    """The versions of glibc that its symbols ask for."""
    return {tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([0-9.]+)", readelf(path, "--version-info"))}


def symbols(path):
    """(section index, binding, name) of its dynamic symbols."""
    rows = (line.split() for line in readelf(path, "--dyn-syms").splitlines())
    return [(row[6], row[4], row[7].split("@")[0]) for row in rows if len(row) > 7 and row[0][:-1].isdigit()]


def exports(path):
    return sorted(name for section, binding, name in symbols(path) if section != "UND" and binding in ("GLOBAL", "WEAK"))


def complaints(path, architecture, glibc):
    header, segments, dynamic = readelf(path, "--file-header"), readelf(path, "--segments"), readelf(path, "--dynamic")
    if MACHINES[architecture] not in header:
        yield "is not for " + architecture
    if not re.search(r"Type: +DYN ", header):
        yield "is not position-independent"
    if "GNU_RELRO" not in segments:
        yield "has no RELRO"
    if not re.search(r"\(FLAGS(_1)?\).*NOW", dynamic):
        yield "binds symbols late (no BIND_NOW)"
    stack = re.search(r"GNU_STACK.*", segments)
    if not stack or re.search(r" RWE ", stack.group()):
        yield "has an executable stack"
    if re.search(r"LOAD.* RWE ", segments):
        yield "has a segment that is writable and executable"
    if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
        yield "has an RPATH or RUNPATH"
    for library in sorted(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - LIBRARIES):
        yield "needs " + library
    for version in sorted(versions(path)):
        if version > tuple(map(int, glibc.split("."))):
            yield "needs glibc " + ".".join(map(str, version))
    names = {name for _, _, name in symbols(path)}
    if "__stack_chk_fail" not in names:
        yield "has no stack protector"
    if not any(name.endswith("_chk") for name in names):
        yield "has no fortified calls"


def main(prefix, architecture, glibc):
    program = os.path.join(prefix, "bin/shmguard")
    library = os.path.join(prefix, "libexec/shmguard/libshmguard-preload.so")
    api = os.path.join(prefix, "lib/libshmguard.so.1")
    found = [(path, complaint) for path in (program, library, api) for complaint in complaints(path, architecture, glibc)]
    found += [(api, "exports " + name) for name in exports(api) if not name.startswith(("shmguard_", "SHMGUARD_"))]
    exported = exports(library)
    with open(os.path.join(os.path.dirname(__file__), "../tests/guard/exports.list"), encoding="ascii") as wanted:
        difference = set(exported) ^ set(wanted.read().split())
    found += [(library, "differs from tests/guard/exports.list in " + name) for name in sorted(difference)]
    for path, complaint in found:
        print("check: {} {}".format(os.path.relpath(path, prefix), complaint), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
