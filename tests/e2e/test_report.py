# SPDX-License-Identifier: Apache-2.0
"""What report says of recordings: as text, as JSON, as a page; and of what is none."""

import json
import os
import sqlite3
import stat

import pytest

from conftest import NOBODY, PROGRAM, as_user
from page import has_page, make_recording, missing
from test_bad_input import refused


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Twenty minutes of a made training, with eight workers."""
    return make_recording(tmp_path_factory.mktemp("report") / "run.db", 1200, 1, 8)


@pytest.fixture
def page_built():
    if not has_page():
        missing("the program was built without the page: scripts/need web, and build again")


def test_json(here, recording):
    answer = here.json("report", recording)
    assert answer["overall"] == answer["verdicts"][0]["id"] == "fd-leak"
    assert answer["verdicts"][0]["subject"] == {"pid": 4100, "role": "trainer"}
    assert 0.3 < answer["verdicts"][0]["rate"] < 0.4
    assert answer["recording"]["samples"] == 1200 and answer["recording"]["seconds"] == 1199
    assert answer["peaks"]["processes"] == 9 and len(answer["processes"]) == 49
    trainer = answer["processes"][0]
    assert trainer["pid"] == 4100 and trainer["ended"] is None and 590 <= trainer["peaks"]["fds"] <= 612
    assert [event["text"] for event in answer["events"] if event["kind"] == "epoch"] == [f"epoch {n}" for n in range(1, 6)]
    assert not [event for event in answer["events"] if event["kind"] == "mark"], "the user's marks of epochs are told once"


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("utf8", [True, False])
def test_text(here, recording, columns, utf8):
    environment = {"PATH": os.environ["PATH"], "COLUMNS": str(columns), "LC_ALL": "C.UTF-8" if utf8 else "C"}
    done = here.shmguard("report", recording, env=environment)
    assert done.returncode == 0 and done.stderr == b"", done
    text = done.stdout.decode()
    assert text.startswith("✗ fd-leak: trainer 4100" if utf8 else "X fd-leak: trainer 4100")
    assert "\033" not in text and all(len(line) <= columns for line in text.splitlines())
    assert ("█" in text) == ("▁" in text) == utf8
    assert "What to do:" in text and "OOM kills: 1, epochs: 5" in " ".join(text.split()) and "estimated" in text
    if columns == 200:
        assert "alert(2)" in text, "there is room for commands"
    always = here.shmguard("report", recording, "--color", "always", env=environment).stdout
    assert b"\033[1;31m" in always


def test_page_is_whole_or_not_there(here, recording, tmp_path, page_built):
    html = tmp_path / "report.html"
    before = os.umask(0o022)
    try:
        done = here.shmguard("report", recording, "-o", html)
    finally:
        os.umask(before)
    assert done.returncode == 0 and done.stderr == b"" and done.stdout.count(b"\n") == 1, done
    assert b"fd-leak" in done.stdout and str(html).encode() in done.stdout
    assert os.listdir(tmp_path) == ["report.html"]
    assert stat.S_IMODE(html.stat().st_mode) == 0o644
    text = html.read_text()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "http:" not in text.replace("http://www.w3.org/", "") and "https:" not in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["verdicts"][0]["id"] == "fd-leak" and len(data["processes"]) == 49
    # Once more, over the old one, and to a pipe.
    assert here.shmguard("report", recording, "--output", html, "--json").returncode == 0
    assert here.shmguard("report", recording, "-o", "-").stdout == html.read_bytes()


def test_a_day_of_64_workers_stays_small(here, tmp_path, page_built):
    """Two hours of it here; the made day has the same bound."""
    recording = make_recording(tmp_path / "wide.db", 7200, 1, 64)
    html = tmp_path / "report.html"
    assert here.shmguard("report", recording, "-o", html).returncode == 0
    assert 500_000 < html.stat().st_size < 2_000_000


def test_built_without_the_page(here, recording, tmp_path):
    """What it says then; the rest works."""
    if has_page():
        pytest.skip("the program was built with it")
    refused(here.shmguard("report", recording, "-o", tmp_path / "x.html"), 69, "npm", "-o")
    assert os.listdir(tmp_path) == []
    assert here.shmguard("report", recording).returncode == 0


def test_bad_input(here, recording, tmp_path):
    html = tmp_path / "out.html"
    (tmp_path / "site").mkdir()
    none = tmp_path / "none.db"
    none.write_bytes(b"SQLite format 3\0 but not really" + bytes(4096))
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t(a)")
    later = tmp_path / "later.db"
    later.write_bytes(recording.read_bytes())
    with sqlite3.connect(later) as db:
        db.execute("PRAGMA user_version = 99")
    empty = tmp_path / "empty.db"
    empty.touch()
    nothing = make_recording(tmp_path / "nothing.db", 0, 1, 0)
    refused(here.shmguard("report"), 64, "the recording is missing", "shmguard report FILE")
    refused(here.shmguard("report", recording, "more"), 65, "more: No such file")
    refused(here.shmguard("report", tmp_path / "absent.db"), 65, "absent.db", "No such file", "shmguard record")
    refused(here.shmguard("report", tmp_path / "site"), 65, "no recording in the directory", "--record")
    refused(here.shmguard("report", "/dev/null"), 65, "/dev/null", "not a recording")
    for file in (none, other):
        refused(here.shmguard("report", file, "--json"), 65, file.name, "not a recording", "shmguard record")
    refused(here.shmguard("report", later), 65, "later.db", "later version")
    for file in (empty, nothing):
        refused(here.shmguard("report", file), 65, file.name, "has no samples", "record again")
    refused(here.shmguard("report", "\033[31m\n.db"), 65, "\\x1b[31m\\n.db")
    assert not html.exists()


def test_bad_output(here, recording, tmp_path, page_built):
    before = recording.read_bytes()
    link = tmp_path / "link.html"
    link.symlink_to(recording)
    for path in (recording, link):
        refused(here.shmguard("report", recording, "-o", path), 64, "is the recording itself", "another name")
    other = tmp_path / "other.db"
    other.write_bytes(before)
    refused(here.shmguard("report", recording, "-o", other), 64, "other.db", "another recording", "another name")
    assert other.read_bytes() == before
    other.unlink()
    refused(here.shmguard("report", recording, "-o", ""), 64, "-o", "report.html")
    refused(here.shmguard("report", recording, "-o", "-", "--json"), 64, "--json", "-o")
    refused(here.shmguard("report", recording, "-o", tmp_path), 65, "directory")
    refused(here.shmguard("report", recording, "-o", tmp_path / "no" / "such" / "page.html"), 65, "No such file")
    assert recording.read_bytes() == before and os.listdir(tmp_path) == ["link.html"]


def test_not_permitted(here, recording, tmp_path, page_built, public):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    stranger = here.within(*as_user(NOBODY), program=public / os.path.basename(PROGRAM))
    directory = public / "report"
    directory.mkdir(exist_ok=True)
    closed = directory / "closed.db"
    closed.write_bytes(recording.read_bytes())
    closed.chmod(0o600)
    refused(stranger.shmguard("report", closed), 77, "closed.db", "Permission denied", "owner")
    closed.chmod(0o644)
    refused(stranger.shmguard("report", closed, "-o", directory / "page.html"), 77, "page.html", "Permission denied")
    assert os.listdir(directory) == ["closed.db"]
