# SPDX-License-Identifier: Apache-2.0
"""What the shells offer, asked of the shells themselves, and that it is what --help says."""

import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import PROGRAM, PROJECT, holder
from test_bad_input import COMMANDS, help_of, options_of

HERE = PROJECT / "completions"
BASH_COMPLETION = pathlib.Path("/usr/share/bash-completion/bash_completion")

BASH = r"""
source "$1"; shift
COMP_WORDS=(); for word; do COMP_WORDS+=("$word"); done
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="${COMP_WORDS[*]}" COMP_POINT=${#COMP_LINE}
compopt() { :; } # which exists only while Readline completes
_shmguard
printf '%s\n' "${COMPREPLY[@]}"
"""

# An interactive zsh on a pseudo-terminal writes what is offered into a file, and ends after the first completion.
ZSH_INSIDE = r"""
PS1= COLUMNS=300 LINES=200
fpath=($DIRECTORY $fpath)
autoload -Uz compinit
compinit -D -u
bindkey '^I' complete-word
compadd() {
    local -a found
    # With these it only asks which words match.
    if [[ ${@[1,(i)(-|--)]} != *-[AOD]* ]]; then
        builtin compadd -O found "$@"
        print -rl -- $found >>$OFFERED
    fi
    builtin compadd "$@"
}
finish() { exit }
comppostfuncs=(finish)
"""
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "source $1"
zpty -w -n shell "$2"$'\t'
while zpty -r shell line; do :; done
"""


class Shell:
    """Completes the last word of a command line."""

    def __init__(self, name, directory):
        self.name = name
        self.directory = directory
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"no {name}: scripts/need test installs it")
        self.environment = {**os.environ, "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}", "HOME": str(directory), "TERM": "dumb",
                            "XDG_CONFIG_HOME": str(directory), "LC_ALL": "C.UTF-8"}

    def run(self, *command, **kwargs):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=self.directory, env=self.environment,
                              stdin=subprocess.DEVNULL, **kwargs)
        return done.stdout

    def offers(self, *words):
        """The set of what is offered."""
        if self.name == "bash":
            return set(filter(None, self.run("bash", "--norc", "-c", BASH, "bash", HERE / "shmguard.bash", "shmguard", *words).splitlines()))
        line = " ".join(["shmguard", *words])
        if self.name == "fish":
            code = f"source {HERE}/shmguard.fish; complete -C {line!r}"
            return {row.split("\t")[0] for row in self.run("fish", "--no-config", "-c", code).splitlines()}
        inside = self.directory / "inside.zsh"
        inside.write_text(ZSH_INSIDE)
        offered = self.directory / ".offered"
        offered.write_text("")
        self.environment |= {"OFFERED": str(offered), "DIRECTORY": str(HERE)}
        self.run("zsh", "-f", "-c", ZSH, "zsh", str(inside), line)
        return set(filter(None, offered.read_text().splitlines()))


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request, tmp_path):
    return Shell(request.param, tmp_path)


def test_commands(shell):
    assert set(COMMANDS) <= shell.offers("")
    assert shell.offers("ru") >= {"run"}


@pytest.mark.parametrize("command", COMMANDS)
def test_options(shell, command):
    """The same as --help lists."""
    offered = {word.partition("=")[0] for word in shell.offers(command, "--")}
    assert {word for word in offered if word.startswith("--") and len(word) > 2} == {*options_of(command), "--help"}


def test_values(shell):
    assert shell.offers("doctor", "--color", "") == {"auto", "always", "never"}
    assert shell.offers("run", "--shm", "") == {"auto", "off"}
    assert shell.offers("doctor", "--only", "shm-o") >= {"shm-orphans", "shm-of-pod"}


def test_recordings(shell, tmp_path):
    for name in ("run.db", "run.log"):
        (tmp_path / name).touch()
    assert shell.offers("report", "ru") == {"run.db"}
    assert shell.offers("watch", "--replay", "ru") == {"run.db"}
    assert shell.offers("explain", "run.l") == {"run.log"}


def test_pids(shell, here):
    with holder(here, "held = open('/dev/shm/psm_1234abcd', 'w')") as pid:
        try:
            assert str(pid) in shell.offers("doctor", "--pid", "") and str(pid) in shell.offers("where", "")
        finally:
            (here.shm / "psm_1234abcd").unlink()


def test_the_users_command(shell, tmp_path):
    """Behind "--" it is completed as if it stood alone."""
    (tmp_path / "train.py").touch()
    assert "python3" in shell.offers("run", "--quiet", "--", "python")
    assert any(word.endswith("train.py") for word in shell.offers("run", "--", "cat", "tr"))
    assert not any(word.startswith("--budget") for word in shell.offers("run", "--", "cat", "--bud"))


def test_an_equals_sign():
    """For bash it is a word."""
    done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", HERE / "shmguard.bash", "shmguard", "run", "--pin", "=", "o"],
                          capture_output=True, text=True, check=True)
    assert done.stdout == "off\n"


def test_bash_completion_finds_it(tmp_path):
    """By its name in the directory where it is installed."""
    if not BASH_COMPLETION.exists():
        pytest.skip("no bash-completion: scripts/need test installs it")
    directory = tmp_path / "bash-completion" / "completions"
    directory.mkdir(parents=True)
    shutil.copy(HERE / "shmguard.bash", directory / "shmguard")
    code = f"source {BASH_COMPLETION}; _completion_loader shmguard; complete -p shmguard"
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "XDG_DATA_HOME": str(tmp_path)})
    assert "-F _shmguard shmguard" in done.stdout, done


def test_help_and_manual_are_the_same():
    for command in COMMANDS:
        page = (PROJECT / "man" / f"shmguard-{command}.1").read_text().replace("\\-", "-")
        tags = {line.split("\\fB")[-1].split("\\fR")[0] for line in page.splitlines() if line.startswith("\\fB-")}
        assert tags == {*options_of(command), "--help"}
        assert f"shmguard-{command} - " in page and help_of(command)


@pytest.mark.parametrize("tool", [["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-T", "lint", "-W", "warning"]], ids=lambda tool: tool[0])
def test_manuals_have_no_warnings(tool):
    if shutil.which(tool[0]) is None:
        pytest.skip(f"no {tool[0]}: scripts/need test lint installs it")
    pages = sorted((PROJECT / "man").glob("*.1"))
    assert len(pages) == len(COMMANDS) + 1
    done = subprocess.run([*tool, *pages], capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
