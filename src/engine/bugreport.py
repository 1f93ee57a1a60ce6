# SPDX-License-Identifier: Apache-2.0
"""Packs what a bug report needs into one archive, and lists it: bugreport.py CAPTURE-ROOT OUTPUT VERSION [RUN-REPORT]

`shmguard bugreport` runs it; Python 3.6 or later. The archive has the versions, a capture of this machine as scripts/capture-root makes it,
and the report of a run. Commands lose their arguments, and whatever looks like a secret is replaced by "…".
Exit codes: 0 done, 65 unusable input, 69 no /proc, 77 no permission."""

import argparse
import errno
import importlib.machinery
import importlib.util
import io
import json
import os
import platform
import re
import sys
import tarfile
import time

MORE = "…"
SECRETS = (
    # --token=abc, PASSWORD: abc, Authorization: Bearer abc
    (re.compile(r"(?i)([\w-]*(?:token|secret|passw(?:or)?d|passphrase|credential|api[_-]?key|access[_-]?key|authorization)[\w-]*\s*[=:]\s*)(?:bearer\s+)?\S+"),
     r"\1" + MORE),
    (re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s@]+@"), r"\1" + MORE + "@"),  # https://user:password@host
    (re.compile(r"\b[A-Za-z0-9+_-]{32,}={0,2}"), MORE),  # keys, in base64 or hexadecimal
    (re.compile(r"(/home/|/Users/)[^/\s]+"), r"\1" + MORE),
)


class BadInput(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def load_capture(path):
    loader = importlib.machinery.SourceFileLoader("capture_root", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def clean_text(text):
    for pattern, replacement in SECRETS:
        text = pattern.sub(replacement, text)
    return text


def clean_value(capture, value, name=None):
    """A value of the run's report without what may be secret."""
    if name == "command" and isinstance(value, list):
        kept = capture.cut_command("\0".join(map(str, value)).encode("utf-8", "replace"))
        return kept.decode("utf-8", "replace").rstrip("\0").split("\0")
    if isinstance(value, dict):
        return {key: clean_value(capture, item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_value(capture, item) for item in value]
    return clean_text(value) if isinstance(value, str) else value


def clean_report(capture, path):
    try:
        with open(path, "rb") as file:
            report = json.loads(file.read().decode())
    except OSError as error:
        raise BadInput(77 if error.errno in (errno.EACCES, errno.EPERM) else 65,
                       "--report {}: {}; name the file of shmguard run --report".format(clean_name(path), error.strerror)) from None
    except ValueError:
        report = None
    if not isinstance(report, dict) or report.get("schema") != "shmguard.run/1":
        raise BadInput(65, "--report {}: this is not a report of shmguard run --report".format(clean_name(path)))
    return json.dumps(clean_value(capture, report), indent=2, ensure_ascii=False).encode() + b"\n"


def clean_name(path):
    return "".join(char if char.isprintable() else "?" for char in path)


def installed(name):
    try:
        from importlib import metadata
        return metadata.version(name)
    except Exception:  # not installed, or a Python before 3.8
        return "unknown"


def system_name():
    try:
        with open("/etc/os-release", "rb") as file:
            found = re.search(rb'^PRETTY_NAME="?([^"\n]*)', file.read(), re.M)
            return found.group(1).decode("utf-8", "replace") if found else "unknown"
    except OSError:
        return "unknown"


def versions(version):
    system = os.uname()
    lines = [version.strip(),
             "system: {} {}, {}".format(system.sysname, system.release, system.machine),
             "distribution: {}".format(system_name()),
             "C library: {}".format(" ".join(platform.libc_ver()) or "unknown"),
             "python3: {} ({})".format(platform.python_version(), platform.python_implementation()),
             "PyTorch of this python3: {}".format(installed("torch")),
             "numpy of this python3: {}".format(installed("numpy"))]
    return "\n".join(lines).encode() + b"\n"


def add(archive, name, data=None, link=None):
    member = tarfile.TarInfo(name)
    member.mtime = int(time.time())
    if link is not None:
        member.type, member.linkname = tarfile.SYMTYPE, link
        archive.addfile(member)
    elif data is None:
        member.type, member.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(member)
    else:
        member.size, member.mode = len(data), 0o600
        archive.addfile(member, io.BytesIO(data))


def write(path, top, texts, tree):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out, tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
            for name, data in texts.items():
                add(archive, "{}/{}".format(top, name), data)
            for name in sorted(tree.directories):
                add(archive, "{}/machine/{}".format(top, os.fsdecode(name)))
            for name, data in sorted(tree.files.items()):
                add(archive, "{}/machine/{}".format(top, os.fsdecode(name)), data)
            for name, target in sorted(tree.links.items()):
                add(archive, "{}/machine/{}".format(top, os.fsdecode(name)), link=os.fsdecode(target))
    except BaseException:
        os.unlink(path)
        raise


def main(arguments):
    capture_path, output, version = arguments[:3]
    capture = load_capture(capture_path)
    try:
        texts = {"versions.txt": versions(version)}
        if len(arguments) > 3:
            texts["run.json"] = clean_report(capture, arguments[3])
        if capture.read_file("proc/meminfo") is None:
            raise BadInput(69, "/proc is not mounted; mount it: mount -t proc proc /proc")
        tree, processes, segments = capture.capture(argparse.Namespace(pid=[], all=False, arguments=False))
        top = re.sub(r"\.tar\.gz$", "", os.path.basename(output)) or "bugreport"
        write(output, top, texts, tree)
    except BadInput as bad:
        sys.stderr.write("shmguard: bugreport: {}\n".format(bad))
        return bad.code
    except OSError as error:
        remedy = "name a new file with --output" if error.errno == errno.EEXIST else "name a file that you may write with --output"
        sys.stderr.write("shmguard: bugreport: {}: {}; {}\n".format(clean_name(output), error.strerror, remedy))
        return 77 if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else 65
    out = ["wrote {} ({:.1f} KiB), which only you may read. It has:".format(output, os.path.getsize(output) / 1024), "  versions.txt"]
    out += ["    " + line for line in texts["versions.txt"].decode().splitlines()]
    if "run.json" in texts:
        out += ["  run.json: the report of the run, without arguments of commands"]
    out += ["  machine/: memory, limits, mounts, control groups, lines of the kernel log about OOM kills, the names of {} files in /dev/shm,".format(segments),
            "    and state, mappings and open files of {} processes".format(processes),
            "It has no environments (but three variables that name a container or a Slurm job), no contents of files, and no arguments of commands.",
            "What looks like a password, token or key is left out.",
            "It has names of files, users and hosts: look through it before you send it (tar -tzf {}).".format(output)]
    sys.stdout.write("\n".join(out) + "\n")
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
