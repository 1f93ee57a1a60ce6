# SPDX-License-Identifier: Apache-2.0
"""`shmguard bugreport` packs what helps, and no secret."""

import json
import os
import tarfile

from conftest import Machine, PROGRAM

SECRETS = ["hunter2", "opensesame", "0123456789abcdef0123456789abcdef01234567", "s3cr3t-pass"]
FAILS = """
import os, sys
sys.stderr.write("ValueError: api_key=opensesame was refused by https://ada:s3cr3t-pass@example.org/\\n")
sys.stderr.write("RuntimeError: 0123456789abcdef0123456789abcdef01234567\\n")
sys.exit(1)
"""


def members(path):
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2]: (archive.extractfile(member).read() if member.isfile() else None) for member in archive}


def test_no_secrets(here, tmp_path):
    report = tmp_path / "run.json"
    out = tmp_path / "report.tar.gz"
    environment = {**os.environ, "WANDB_API_KEY": SECRETS[0]}
    here.shmguard("run", "--report", report, "--", "/usr/bin/python3", "-c", FAILS, "--password", SECRETS[0], env=environment)
    done = here.shmguard("bugreport", "-o", out, "--report", report, env=environment)
    assert done.returncode == 0 and done.stderr == b"", done
    assert out.stat().st_mode & 0o777 == 0o600
    found = members(out)
    assert any(secret.encode() in report.read_bytes() for secret in SECRETS)
    assert not [(name, secret) for name, data in found.items() for secret in SECRETS if secret.encode() in (data or b"")]
    assert json.loads(found["run.json"])["schema"] == "shmguard.run/1"
    assert found["versions.txt"].startswith(b"shmguard ") and b"C library" in found["versions.txt"]
    assert all(line in done.stdout for line in found["versions.txt"].splitlines())


def test_the_machine_can_be_replayed(tmp_path):
    out = tmp_path / "machine.tar.gz"
    assert Machine().shmguard("bugreport", "-o", out).returncode == 0
    with tarfile.open(out) as archive:
        archive.extractall(tmp_path)
    assert "/dev/shm" in Machine().doctor("--root", tmp_path / "machine" / "machine")["shm"]["path"]


def test_nothing_is_left_of_a_failure(here, tmp_path):
    done = here.shmguard("bugreport", "-o", tmp_path / "x.tar.gz", "--report", "/etc/passwd")
    assert done.returncode == 65 and list(tmp_path.iterdir()) == []


def test_without_python(here, tmp_path):
    done = here.run("env", f"PATH={tmp_path}", PROGRAM, "bugreport", "-o", tmp_path / "x.tar.gz")
    assert done.returncode == 69 and b"no python3" in done.stderr and done.stderr.count(b"\n") == 1
