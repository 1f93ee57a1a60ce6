# SPDX-License-Identifier: Apache-2.0
"""The guides are followed word by word: each command is run as it stands there, and prints what is shown.

A comment above a block says how: `shm: 64m` and `memory: 700m` where it runs, `exit: 0 1` which exit codes its last command may
have (0 unless it says so), `long: WHY` that it takes long, `not run: WHY`. In what is shown, … stands for anything, and numbers
and sizes may differ."""

import contextlib
import os
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAM, PROJECT, PYTHONS, control_group, mount_namespace, needs_root
from test_readme import commands_with_unknown_options

GUIDES = PROJECT / "docs" / "guides"
ENGLISH = sorted(path for path in GUIDES.glob("*.md") if not path.name.endswith(".zh-CN.md") and path.name != "README.md")
BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\w*)\n(.*?)^```$", re.M | re.S)
NUMBER = r"\d+(?:\.\d+)?"
UNITS = {"m": 1 << 20, "g": 1 << 30}


class Block:
    def __init__(self, match):
        self.how = dict(line.partition(": ")[::2] for line in re.findall(r"^<!-- (.*) -->$", match[1], re.M))
        self.language = match[2]
        self.text = match[3]

    @property
    def steps(self):
        """The commands, each with what it is shown to print."""
        return [part.partition("\n")[::2] for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]]


def blocks_of(path):
    return [Block(match) for match in BLOCK.finditer(path.read_text())]


def pattern_of(shown):
    """A regular expression for the output of a command."""
    parts = []
    for line in shown.splitlines():
        if line == "…":
            parts.append(r"(?:.*\n)*?")
            continue
        words = [r"[^\n]*".join(re.escape(word) for word in piece.split("…")) for piece in re.split(NUMBER, line)]
        # Numbers may have other lengths, and shmguard breaks lines at a width.
        parts.append(re.sub(r"\\ (?:\\ )*", r"\\s+", NUMBER.join(words)) + r"\n")
    return "".join(parts)


def place(block, stack):
    """Where a block runs."""
    machine = stack.enter_context(mount_namespace(f"size={block.how.get('shm', '1g')}"))
    if "memory" in block.how:
        limit = block.how["memory"]
        machine, _ = stack.enter_context(control_group(machine, int(limit[:-1]) * UNITS[limit[-1]]))
    return machine


def cases():
    """Each block once, also if several guides have it."""
    seen = []
    for path in ENGLISH:
        for number, block in enumerate(blocks_of(path)):
            if block.language == "console" and "not run" not in block.how and (block.how, block.text) not in seen:
                seen.append((block.how, block.text))
                marks = [pytest.mark.long] if "long" in block.how else []
                yield pytest.param(block, id=f"{path.stem}-{number}", marks=marks)


@needs_root
@pytest.mark.parametrize("block", cases())
def test_commands(block, tmp_path):
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name, target in [("python", PYTHONS["system"]), ("python3", PYTHONS["system"]), ("shmguard", PROGRAM)]:
        (binaries / name).symlink_to(target)
    work = tmp_path / "work"
    work.mkdir()
    for name in ("train.py", "trouble.py"):
        shutil.copy(PROJECT / "demo" / name, work)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": str(tmp_path), "COLUMNS": "80", "LC_ALL": "C.UTF-8",
                   "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONPATH", None)
    with contextlib.ExitStack() as stack:
        machine = place(block, stack)
        for number, (command, shown) in enumerate(block.steps, 1):
            done = machine.run("sh", "-c", f"cd {work} && {command}", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            printed = done.stdout.decode().replace("\0", "")
            allowed = block.how.get("exit", "0").split() if number == len(block.steps) else ["0"]
            assert str(done.returncode) in allowed, f"{command}\n{printed}"
            assert re.fullmatch(pattern_of(shown), printed), f"{command}\n{printed}\ndoes not look like\n{shown}"


@pytest.mark.parametrize("path", [*ENGLISH, GUIDES / "README.md"], ids=lambda path: path.stem)
def test_both_languages(path):
    """The Chinese page has the same commands, and its links are the same."""
    chinese = path.with_suffix(".zh-CN.md")
    assert [(block.language, block.how, block.text) for block in blocks_of(path)
            if block.language] == [(block.language, block.how, block.text) for block in blocks_of(chinese) if block.language]
    links = re.findall(r"\]\(([^):]+)\)", path.read_text())
    there = [link.replace(".zh-CN.md", ".md") for link in re.findall(r"\]\(([^):]+)\)", chinese.read_text())]
    assert sorted(links) == sorted(there)
    for link in re.findall(r"\]\(([^):]+)\)", path.read_text() + chinese.read_text()):
        assert (path.parent / link.partition("#")[0]).exists(), link


def test_index():
    named = re.findall(r"\(([a-z-]+\.md)\)", (GUIDES / "README.md").read_text())
    assert sorted(named) == [path.name for path in ENGLISH]


def test_shape():
    """Each guide ends with a command, and names only options that exist."""
    for path in ENGLISH:
        last = blocks_of(path)[-1]
        assert last.language == "console" and path.read_text().endswith("```\n"), path
        assert commands_with_unknown_options(path.read_text()) == [], path
