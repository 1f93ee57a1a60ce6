# SPDX-License-Identifier: Apache-2.0
"""Chinese: complete, with the placeholders of the English texts, in lines and columns that fit, and never in JSON."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unicodedata

import pytest

from conftest import PROGRAM, PROJECT, ROOTS
from test_bad_input import COMMANDS

sys.path.insert(0, str(PROJECT / "po"))
from catalogue import entries_read  # noqa: E402

CHINESE = [entry for entry in entries_read(PROJECT / "po" / "zh_CN.po") if entry.english]
LOGS = sorted((PROJECT / "tests" / "logs").glob("*.log"))
CONVERSION = re.compile(r"%(?:(\d+)\$)?([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j)?(<PRIu64>|[diouxXeEfFgGcspn%])")
HAN = re.compile("[\u3400-\u9fff]")
# Words that no command to copy, no log line and no name has.
ENGLISH = re.compile(r"\b(?:the|is|was|were|because|which|its|there)\b")


def arguments_of(text):
    """The conversions of a format in the order of its arguments. Those without a number count on by themselves."""
    found, following = {}, 1
    for match in CONVERSION.finditer(text):
        number, _, width, precision, length, kind = match.groups()
        if kind == "%":
            continue
        assert not (number and "*" in (width, precision)), f"a starred width needs an order of its own: {text}"
        for star in (width, precision):
            if star == "*":
                found[following] = "*"
                following += 1
        found[int(number) if number else following] = (length or "") + kind
        following += not number
    assert sorted(found) == list(range(1, len(found) + 1)), f"an argument is left out: {text}"
    return [found[i] for i in sorted(found)]


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def run(*words, code=None, **environment):
    base = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG")) and key != "COLUMNS"}
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False, env={**base, **environment})
    assert code is None or done.returncode == code, done
    return done


def chinese(*words, **environment):
    done = run(*words, "--lang", "zh_CN", **environment)
    return done.stdout.decode() + done.stderr.decode()


# --- The catalogue ----------------------------------------------------------------------------------------------------------------------


def test_complete():
    assert len(CHINESE) > 1500
    assert [entry.english for entry in CHINESE if not entry.text] == []
    assert [entry.english for entry in CHINESE if entry.fuzzy] == []
    assert {entry.english for entry in CHINESE} == {entry.english for entry in entries_read(PROJECT / "po" / "shmguard.pot")} - {""}


@pytest.mark.skipif(not shutil.which("xgettext"), reason="no gettext: scripts/need lint installs it")
def test_up_to_date():
    subprocess.run([PROJECT / "po" / "update", "--check"], check=True, timeout=60)
    subprocess.run(["msgfmt", "--check-format", "-o", os.devnull, PROJECT / "po" / "zh_CN.po"], check=True, timeout=60)


def test_placeholders():
    for entry in CHINESE:
        assert sorted(re.findall(r"\{\w+\}", entry.english)) == sorted(re.findall(r"\{\w+\}", entry.text)), entry.english
        if entry.format == "c-format":
            assert arguments_of(entry.text) == arguments_of(entry.english), entry.english
        numbered = [bool(match[1]) for match in CONVERSION.finditer(entry.text) if match[6] != "%"]
        assert entry.format != "c-format" or len(set(numbered)) <= 1, f"all have numbers, or none: {entry.english}"


def test_words_that_stay():
    """Commands, options and names of the field are the same in both languages."""
    kept = re.compile(r"(?<![\w-])--[a-z][a-z-]+|\b(?:DataLoader|num_workers|prefetch_factor|batch_size|pin_memory|collate_fn|tmpfs|PyTorch|CUDA|NCCL|SIG[A-Z]+)\b"
                      r"|/dev/shm|/proc\b|ulimit -\w")
    lost = {entry.english: set(kept.findall(entry.english)) - set(kept.findall(entry.text)) for entry in CHINESE}
    assert {english: words for english, words in lost.items() if words} == {}


def test_punctuation():
    """Full-width beside Chinese, and a blank between Chinese and Latin words."""
    faults = re.compile(r"[\u3400-\u9fff][,;?!.](?:\s|$)|[\u3400-\u9fff]\(|[\u3400-\u9fff][A-Za-z]|[A-Za-z][\u3400-\u9fff]|。 ")
    wrong = [entry.text for entry in CHINESE if faults.search(CONVERSION.sub("", entry.text))]
    assert wrong == []


# --- The choice -------------------------------------------------------------------------------------------------------------------------


def test_choice():
    usage = "用法：shmguard COMMAND"
    assert run("--help", code=0).stdout.startswith(b"Usage: ")
    assert run("--help", LC_ALL="zh_CN.UTF-8").stdout.decode().startswith(usage)
    assert run("--help", LC_MESSAGES="zh_CN.UTF-8", LANG="en_US.UTF-8").stdout.decode().startswith(usage)
    assert run("--help", LANG="zh_CN.UTF-8").stdout.decode().startswith(usage)
    assert run("--help", LC_ALL="C", LANG="zh_CN.UTF-8").stdout.startswith(b"Usage: ")
    assert run("--help", "--lang", "en", LC_ALL="zh_CN.UTF-8").stdout.startswith(b"Usage: ")
    for words in ["--lang", "zh", "ps", "--help"], ["ps", "--help", "--lang=zh_CN.UTF-8"], ["ps", "--lang", "zh_CN", "--help"]:
        assert run(*words, code=0, LC_ALL="C").stdout.decode().startswith("用法：shmguard ps")


def test_wrong_choice():
    done = run("ps", "--lang", "tlh", code=64)
    assert done.stdout == b"" and b'"tlh"' in done.stderr and b"zh_CN" in done.stderr and done.stderr.count(b"\n") == 1
    assert b"--lang zh_CN" in run("ps", "--lang", code=64).stderr
    # Behind "--" is the user's command.
    assert run("run", "-q", "--no-guard", "--", "printf", "%s", "--lang", code=0).stdout == b"--lang"


# --- What programs read -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["ps"], ["doctor"], ["explain", LOGS[0]], ["plan", "--batch-bytes", "32M", "--workers", "4"], ["clean", "--dry-run"]], ids=lambda words: words[0])
def test_json_is_english(words):
    done = run(*words, "--json", LC_ALL="zh_CN.UTF-8")
    assert json.loads(done.stdout)["schema"].startswith("shmguard.")
    assert not HAN.search(done.stdout.decode()) and not HAN.search(done.stderr.decode())


def test_report_of_run(tmp_path):
    """A death is told in Chinese, and reported in English."""
    report = tmp_path / "report.json"
    done = run("run", "--report", report, "--no-guard", "--lang", "zh_CN", "--", "sh", "-c", "kill -SEGV $$")
    assert "在原生代码中崩溃" in done.stderr.decode() and "原因：segfault" in done.stderr.decode().replace("\x1b", "")
    text = report.read_text()
    assert not HAN.search(text) and json.loads(text)["cause"]["id"] == "segfault" and "crashed in native code" in text


def test_state_of_tune(tmp_path):
    state = tmp_path / "state.json"
    words = ["tune", "--vary", "n=1,2", "--trials", "1", "--trial", "1", "--start", "5s", "--rate", "rate: ([0-9]+)", "--state", state, "--", "sh", "-c", "echo {n}; exit 3"]
    done = run(*words[:words.index("--")], "--lang", "zh_CN", *words[words.index("--"):])
    assert "以退出码 3 结束" in done.stderr.decode()
    assert not HAN.search(state.read_text()) and json.loads(state.read_text())["trials"]


def test_library_is_english():
    """Its messages are for programs, too."""
    library = pathlib.Path(PROGRAM).parent / "libshmguard.so"
    if not library.exists():
        pytest.skip("no libshmguard.so: sanitized builds have none")
    script = ("import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); error = ctypes.c_char_p(); json = ctypes.c_char_p()\n"
              "code = library.shmguard_ps((ctypes.c_char_p * 3)(b'--pid', b'x', None), ctypes.byref(json), ctypes.byref(error)); print(code, error.value.decode())")
    done = subprocess.run([sys.executable, "-c", script, library], capture_output=True, check=True, timeout=60, env={**os.environ, "LC_ALL": "zh_CN.UTF-8", "PYTHONUTF8": "1"})
    assert done.stdout.startswith(b"64 ") and b"takes a process id" in done.stdout


# --- What people read -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    text = chinese(command, "--help")
    assert max(map(width, text.splitlines())) <= 80
    options = re.findall(r"^ {2,6}(?:-\w, )?--[a-z-]+.*", text, re.M)
    assert len(options) >= 2 and not ENGLISH.search(text)
    starts = {width(re.match(r" +(?:-\w, )?--\S+(?: [^ ]+)*? {2,}", line).group()) for line in options}
    assert len(starts) == 1, "the texts of the options begin in one column"


def columns_of(lines, titles):
    """Where each column of a table begins or ends, in every line that has all of them."""
    head = lines[0]
    assert all(title in head for title in titles), head
    return [width(head[:head.index(title)]) for title in titles]


@pytest.mark.parametrize("columns", [72, 80, 120])
def test_pages_fit(columns):
    trees = [tree for tree in ROOTS.iterdir() if tree.is_dir()]
    assert trees
    for root in trees:
        for words in ["doctor"], ["ps"], ["ps", "--segments"], ["plan", "--batch-bytes", "32M", "--workers", "4"]:
            text = chinese(*words, "--root", root, COLUMNS=str(columns))
            assert HAN.search(text) and not ENGLISH.search(text)
            for line in text.splitlines():
                if not line.startswith("    ") and "--" not in line:  # commands to copy
                    assert width(line) <= columns, line


def test_columns_line_up():
    """Numbers end under the end of their title, names begin under its beginning, although titles are wide."""
    lines = chinese("ps", "--segments", "--root", ROOTS / "bare-user", COLUMNS="120").splitlines()
    table = lines[:next(i for i, line in enumerate(lines) if not line)]
    name, kind, state, size, allocated, orphan, holders = columns_of(table, ["名称", "类型", "状态", "大小", "已分配", "孤儿", "持有者"])
    for line in table[1:-1]:
        cells = [(width(line[:match.start()]), width(line[:match.end()])) for match in re.finditer(r"\S+(?: (?:B|[KMG]iB|\+\d+))?", line)]
        begins, ends = zip(*cells)
        assert (*begins[:3], *ends[3:5], *begins[5:7]) == (name, kind, state, size + 4, allocated + 6, orphan, holders), line
    lines = chinese("plan", "--batch-bytes", "32M", "--workers", "4", "--shm", "8G", "--memory", "64G").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("配置"))
    head, *table = lines[at:at + 4]
    ends = [width(head[:match.end()]) for match in re.finditer(r"\S+(?: \S+)*", head)]
    for line in table:
        assert [width(line[:match.end()]) for match in re.finditer(r"\S+", line)][1:] == ends[1:], line
    summary = [line for line in chinese("doctor", "--root", ROOTS / "bare-user", COLUMNS="120").splitlines()[:6] if line]
    assert {width(re.match(r"\S+(?: \S+)*? {2,}", line).group()) for line in summary} == {14}


@pytest.mark.parametrize("log", LOGS[::8], ids=lambda log: log.stem)
def test_explain_finds_the_same(log):
    """What a log says does not depend on the language that the answer is given in."""
    english = run("explain", log, "--lang", "en").stdout.decode()
    text = chinese("explain", log)
    assert english.split("\n", 1)[0].split()[1:] == text.split("\n", 1)[0].split()[1:]
    assert len(english.split("\n\n")) == len(text.split("\n\n"))
    quoted = re.search(r"^匹配的日志行：\n(?: .*\n)*", text, re.M)
    prose = text.replace(quoted.group() if quoted else "", "")
    assert max(width(line) for line in prose.splitlines() if not line.startswith("      ")) <= 100
    own = "\n".join(line for line in prose.splitlines() if "抛出" not in line and not line.startswith("      ") and HAN.search(line))
    assert not ENGLISH.search(own), own


def test_errors():
    for words, said in [(["ps", "--pid", "x"], "接受进程号"), (["frobnicate"], "未知命令"), (["ps", "--sgments"], "--segments"), (["report"], "缺少录制文件"),
                        (["explain", "/nonexistent"], "文件或目录不存在"), (["run"], "没有给出命令")]:
        done = run(*words, "--lang", "zh_CN")
        text = done.stderr.decode()
        assert done.returncode in (64, 65) and said in text and text.startswith("shmguard: ") and text.count("\n") == 1, text
