# SPDX-License-Identifier: Apache-2.0
"""import shmguard.auto starts a script again under the guard: once, with its arguments, and not in workers."""
import os

import pytest
from conftest import EVERY_PYTHON, PREFIX, environment, run

SAY = "import shmguard.auto, shmguard, sys; print(shmguard.is_guarded(), sys.argv[1:], sys.flags.optimize, sys.dont_write_bytecode, sys._xoptions)"
SPAWN = """
import shmguard.auto
import multiprocessing, os, shmguard
print("once", flush=True)
def worker(results):
    results.put((shmguard.is_guarded(), os.getppid()))
if __name__ == "__main__":
    for method in "spawn", "forkserver", "fork":
        results = multiprocessing.get_context(method).SimpleQueue()
        process = multiprocessing.get_context(method).Process(target=worker, args=(results,))
        process.start()
        guarded, parent = results.get()
        process.join()
        print(guarded, parent == os.getpid() or method == "forkserver", process.exitcode)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train it.py"
    path.write_text(SAY)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(SAY)
    return path


@pytest.mark.parametrize("how", ["script", "module", "command"])
def test_arguments_are_kept(any_python, script, how):
    if how != "script" and any_python != EVERY_PYTHON[0] and "/3.6." not in any_python:
        return  # one that knows the words that it was started with, and one that does not
    words = {"script": [script], "module": ["-m", "package"], "command": ["-c", SAY]}[how]
    done = run(any_python, "-O", "-B", "-X", "dev=1", *words, "--lr", "0.1", "a b", "", cwd=script.parent)
    assert done.stdout == "True ['--lr', '0.1', 'a b', ''] 1 True {'dev': '1'}\n", done


def test_workers(tmp_path):
    """Only the script itself starts again: spawned workers, which import it, do not."""
    path = tmp_path / "train.py"
    path.write_text(SPAWN)
    done = run("/usr/bin/python3", path)
    assert done.stdout.splitlines().count("True True 0") == 3, done
    assert done.stdout.startswith("once\n")


def test_exit_code(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import shmguard.auto\nraise SystemExit(7)")
    assert run("/usr/bin/python3", path).returncode == 7


@pytest.mark.parametrize("more", [{"SHMGUARD": "off"}, {"SHMGUARD_AUTO": "1"}])
def test_switched_off(script, more):
    done = run("/usr/bin/python3", script, env=environment(**more))
    assert done.stdout.startswith("False []") and done.stderr == ""


def test_where_there_is_no_script():
    done = run("/usr/bin/python3", "-", input=SAY)
    assert done.stdout.startswith("False []")
    assert done.stderr == "shmguard: only a script can start again under the guard; for an interactive session: shmguard run -- python3\n"


def test_without_the_program(script, tmp_path):
    (tmp_path / "alone").mkdir()
    os.symlink(os.path.realpath(PREFIX / "shmguard"), tmp_path / "alone" / "shmguard")
    done = run("/usr/bin/python3", script, env=environment(PYTHONPATH=str(tmp_path / "alone")))
    assert done.stdout.startswith("False []")
    assert done.stderr.startswith("shmguard: the shmguard program is missing; reinstall") and done.stderr.count("\n") == 1
    done = run("/usr/bin/python3", "-m", "shmguard", "ps", env=environment(PYTHONPATH=str(tmp_path / "alone")))
    assert done.returncode == 69 and done.stderr.startswith("shmguard: the shmguard program is missing")


def test_python_m_shmguard():
    assert run("/usr/bin/python3", "-m", "shmguard", "--version").stdout.startswith("shmguard ")
