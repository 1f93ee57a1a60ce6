# SPDX-License-Identifier: Apache-2.0
"""shmguard kernel install writes what Jupyter starts. tests/frameworks does the same with Jupyter itself."""

import json
import os
import subprocess

import pytest

from conftest import PROGRAM

LAUNCHER = "import os, sys; print(os.environ['SHMGUARD_SOCKET'] != '', sys.argv[1:])"


@pytest.fixture
def environment(tmp_path):
    """A Python that has something by the name of ipykernel."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "ipykernel.py").write_text("")
    (modules / "ipykernel_launcher.py").write_text(LAUNCHER)
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "XDG", "SHMGUARD"))}
    return {**mine, "PYTHONPATH": str(modules), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}


def install(environment, *words):
    return subprocess.run([PROGRAM, "kernel", "install", *map(str, words)], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("more, words, place", [
    ({}, [], "home/.local/share/jupyter/kernels/shmguard"),
    ({"XDG_DATA_HOME": "{0}/data"}, [], "data/jupyter/kernels/shmguard"),
    ({"JUPYTER_DATA_DIR": "{0}/mine"}, ["--name", "guarded-3.11"], "mine/kernels/guarded-3.11"),
    ({}, ["--prefix", "{0}/env", "--python", "/usr/bin/python3"], "env/share/jupyter/kernels/shmguard"),
])
def test_install(environment, tmp_path, more, words, place):
    environment.update({name: value.format(tmp_path) for name, value in more.items()})
    for _ in range(2):  # the second replaces the first
        done = install(environment, *(word.format(tmp_path) for word in words), "--display-name", 'Python "x"')
        assert done.returncode == 0 and done.stderr == "", done
    file = tmp_path / place / "kernel.json"
    assert done.stdout.startswith(f"wrote {file}; choose") and done.stdout.count("\n") == 1
    kernel = json.loads(file.read_text())
    assert kernel["display_name"] == 'Python "x"' and kernel["language"] == "python"
    command = [word.replace("{connection_file}", "connection.json") for word in kernel["argv"]]
    started = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert started.stdout == "True ['-f', 'connection.json']\n"


def test_what_is_missing(environment, tmp_path):
    del environment["PYTHONPATH"]
    done = install(environment, "--python", "/usr/bin/python3", "--prefix", tmp_path)
    if done.returncode != 0:  # this Python may have ipykernel
        assert done.returncode == 69 and "/usr/bin/python3 -m pip install ipykernel" in done.stderr
        assert not (tmp_path / "share").exists()


def test_a_place_that_cannot_be(environment, tmp_path):
    (tmp_path / "file").write_text("")
    done = install(environment, "--prefix", tmp_path / "file")
    assert done.returncode == 65 and done.stderr == f"shmguard: kernel: {tmp_path}/file/share/jupyter/kernels/shmguard/kernel.json: Not a directory\n"
    del environment["HOME"]
    done = install(environment)
    assert done.returncode == 69 and "--prefix DIR" in done.stderr
