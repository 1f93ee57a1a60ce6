# SPDX-License-Identifier: Apache-2.0
"""The manual and --help name everything in docs/reference.md, which is generated from the tables of the program."""

import re

import pytest

from conftest import PROJECT
from test_bad_input import COMMANDS, help_of, options_of

REFERENCE = (PROJECT / "docs" / "reference.md").read_text()
MANUAL = re.sub(r"\\f[BIR]", "", (PROJECT / "man" / "shmguard.1").read_text().replace("\\-", "-"))


def section(text, title, mark):
    """The part of a page below a title. `mark` is the markup of titles at that level."""
    return re.split(rf"^{re.escape(mark)} ", text.split(f"\n{mark} {title}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def rows(title):
    """The ids in the first column of the tables below a title."""
    return re.findall(r"^\| `([a-z-]+)`", section(REFERENCE, title, "##"), re.M)


def test_commands():
    assert re.findall(r"^### (\w+)$", REFERENCE, re.M) == COMMANDS
    assert re.findall(r"^\.BR shmguard-(\w+) \(1\)$", section(MANUAL, "COMMANDS", ".SH"), re.M) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_options(command):
    listed = set(re.findall(r"^\| .*?`(--[a-z-]+)", section(REFERENCE, command, "###"), re.M))
    assert listed == set(options_of(command))
    assert help_of(command).startswith(f"Usage: shmguard {command} ")


@pytest.mark.parametrize("title, heading", [("Findings of `doctor`", "FINDINGS"), ("Causes of `run` and `explain`", "CAUSES"),
                                            ("Verdicts of `report`", "VERDICTS")])
def test_ids(title, heading):
    ids = rows(title)
    assert len(ids) > 5 and len(set(rows(title))) > 5
    told = section(MANUAL, heading, ".SH")
    assert [name for name in ids if not re.search(rf"(?<![a-z-]){name}(?![a-z-])", told)] == []


def test_details():
    details = re.findall(r"^\| `[a-z-]+` \| `([a-z-]+)` \|", REFERENCE, re.M)
    told = section(MANUAL, "CAUSES", ".SH")
    assert details and [name for name in details if not re.search(rf"(?<![a-z-]){name}(?![a-z-])", told)] == []


def test_exit_codes():
    codes = re.findall(r"^\| (\d+) \|", section(REFERENCE + "\n## ", "Exit codes", "##"), re.M)
    told = section(MANUAL, '"EXIT STATUS"', ".SH")
    assert len(codes) >= 8 and all(re.search(rf"\b{code}\b", told) for code in codes)


def test_figures_of_the_report_of_run():
    figures = re.findall(r"`(\w+)`", section(REFERENCE, "Figures in the report of `run`", "##").split("`peaks`", 1)[1])
    told = section(MANUAL, "JSON", ".SH")
    assert len(figures) > 20 and [name for name in figures if not re.search(rf"\b{name}\b", told)] == []
