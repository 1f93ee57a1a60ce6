# SPDX-License-Identifier: Apache-2.0
"""What the README claims, as far as a test can check it."""

import re
import shlex

from conftest import PROJECT, ROOTS, Machine
from test_bad_input import COMMANDS, options_of

README = (PROJECT / "README.md").read_text()
OWN = ["--help", "--version"]


def command_lines(text):
    """(command, options) of each `shmguard COMMAND …` in a text, without the words of the user's command."""
    text = text.replace("\\\n", " ")
    for line in re.findall(r"shmguard ((?:%s)\b[^\n`]*)" % "|".join(COMMANDS), text):
        words = re.split(r"\s(?:--(?=\s)|#)", line, maxsplit=1)[0]
        yield words.split()[0], re.findall(r"(?<!\S)--[a-z-]+", words)


def test_commands():
    named = {command for command, _ in command_lines(README)}
    assert named == set(COMMANDS)


def commands_with_unknown_options(text):
    return [(command, option) for command, options in command_lines(text) for option in options
            if option not in options_of(command) and option not in OWN]


def test_options_of_command_lines():
    assert commands_with_unknown_options(README) == []


def test_options_in_prose():
    """Every option in backquotes belongs to some command."""
    known = {option for command in COMMANDS for option in options_of(command)} | set(OWN)
    named = set(re.findall(r"`(--[a-z][a-z-]*)", README))
    assert named and named <= known | {"--shm-size"}


def test_links():
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links and [link for link in links if not (PROJECT / link).exists()] == []


def test_chinese():
    """The Chinese README has the same examples, figures and links."""
    chinese = (PROJECT / "README.zh-CN.md").read_text()

    def parts(text):
        links = [link.replace(".zh-CN", "") for link in re.findall(r"\]\(([^)]+)\)", text)]
        rows = [re.findall(r"\d[\d.]*(?= times| MiB| GiB|\)| to|\s*\|)", row) for row in re.findall(r"^\| .*", text, re.M)]
        return re.findall(r"^```.*?^```$", text, re.M | re.S), sorted(set(links) - {"README.md"}), rows, len(re.findall(r"^##+ ", text, re.M))

    assert parts(chinese) == parts(README)


def test_json():
    """The sentence about --json names exactly the commands that have it."""
    claim = next(sentence for sentence in re.split(r"(?<=[.;])\s+", README.replace("\n", " ")) if "`--json`" in sentence)
    named = set(re.findall(r"`(\w+)`", claim))
    assert named == {command for command in COMMANDS if "--json" in options_of(command)}, claim


def test_examples():
    """The examples that use a captured machine or only compute are what the program prints; … stands for omitted lines."""
    examples = re.findall(r"^\$ shmguard ((?:doctor|ps|plan)\b.*)\n((?:(?!```).*\n)*)", README, re.M)
    assert len(examples) == 3
    for command, shown in examples:
        words = shlex.split(command.replace("build/tests/roots", str(ROOTS)))
        if words == ["doctor"]:
            words += ["--root", str(ROOTS / "docker")]
        printed = Machine().run("env", "COLUMNS=80", Machine().program, *words).stdout.decode()
        for part in re.split(r"^…\n", shown, flags=re.M):
            assert part in printed, command
