# SPDX-License-Identifier: Apache-2.0
"""What people do with shared tensors gives the same results plainly, with the library preloaded by hand, and under `shmguard
run`; the guarded runs have a /dev/shm of 1 MB. semantics.py has the cases; here are the ways to start them.
"""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import textwrap

import pytest

from conftest import PATIENCE, PROGRAM, PYTHONS, SANITIZED, free_port, needs_root, python_of, skip_without_torchrun

CASES = pathlib.Path(__file__).with_name("semantics.py")
LIBRARY = pathlib.Path(PROGRAM).resolve().parent / "libshmguard-preload.so"
QUIET_PYTHON = ("-W", "ignore")
BOTH = ("--strategies", "file_descriptor,file_system")

# Each spawned process loads PyTorch, and each process of a forkserver starts a manager, which takes long. So these run
# only the cases where the start method matters.
FEWER = ("share_memory_both_ways", "resent_by_the_receiver", "persistent_workers", "python_shared_memory")
FEW = ("hogwild", "share_memory_both_ways", "resent_by_the_receiver", "tensors_outlive_their_producer", "persistent_workers",
       "python_shared_memory", "train")

pytestmark = [
    needs_root,
    pytest.mark.skipif(SANITIZED, reason="an instrumented library cannot be preloaded into a plain program"),
    pytest.mark.xdist_group("semantics"),  # they share the results of the plain runs
]


def private(size, *command):
    """The command with a private /dev/shm of that size, which disappears with it."""
    return ["unshare", "-m", "--propagation", "private", "sh", "-c",
            f'mount -t tmpfs -o size={size} tmpfs /dev/shm && exec "$@"', "sh", *map(str, command)]


def environment(**more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith(("LD_PRELOAD", "SHMGUARD_"))}, **more}


def environment_of_users(**more):
    """The same with all modules of PyTorch: see site/sitecustomize.py."""
    return {**{name: value for name, value in environment().items() if name != "PYTHONPATH"}, **more}


def results(done):
    """The results by case. If something went wrong, the last line names the case."""
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    failed = [f"{name}: {result}" for name, result in lines.items() if result.startswith("FAILED") or not result]
    assert done.returncode == 0 and not failed, "\n".join([*failed, done.stderr[-4000:], done.stdout[-500:]])
    return lines


def run_cases(prefix, size, python, *options, **more):
    done = subprocess.run([*private(size, *prefix, python, *QUIET_PYTHON, CASES, *options)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment_of_users(**more), text=True, timeout=2 * PATIENCE,
                          check=False)
    return results(done)


@functools.lru_cache(maxsize=None)
def plain(python, method):
    lines = run_cases((), "2g", python, *BOTH, "--methods", *method)
    assert lines
    return lines


def assert_same(guarded, expected):
    different = [f"{name}:\n  plain   {expected.get(name)}\n  guarded {guarded.get(name)}"
                 for name in sorted(expected.keys() | guarded.keys()) if expected.get(name) != guarded.get(name)]
    assert not different, "\n".join(different)


FORK = ("fork",)
METHODS = [pytest.param(FORK, id="fork"), pytest.param(("forkserver", *FEW), id="forkserver", marks=pytest.mark.long),
           pytest.param(("spawn", *FEWER), id="spawn", marks=pytest.mark.long)]


@pytest.mark.parametrize("method", METHODS)
def test_under_run(python, method):
    guarded = run_cases((PROGRAM, "run", "--quiet", "--"), "1m", python, *BOTH, "--methods", *method)
    assert_same(guarded, plain(python, method))


# The guard itself works as under run. This covers what works without the broker.
@pytest.mark.parametrize("method", [pytest.param(("fork", *FEW), id="few"),
                                    *(pytest.param(*method.values, id=method.id, marks=pytest.mark.long) for method in METHODS)])
def test_by_hand(one_python, method):
    """Without a supervisor, file descriptors need no /dev/shm, but names are in the real one and must fit."""
    expected = plain(one_python, FORK if method[0] == "fork" else method)
    more = {"LD_PRELOAD": str(LIBRARY), "LD_LIBRARY_PATH": ""}  # with all libraries of PyTorch: see unlinked.py
    in_1_mb = run_cases((), "1m", one_python, "--no-names", "--methods", *method, **more)
    by_name = run_cases((), "2g", one_python, "--strategies", "file_system", "--methods", *method, **more)
    assert in_1_mb and by_name
    for guarded in (in_1_mb, by_name):
        assert_same(guarded, {name: expected[name] for name in guarded})


def test_the_comparison_can_fail(one_python):
    """Proves that the cases need more than 1 MB: without the guard they die, and the last line names the case."""
    done = subprocess.run(private("1m", one_python, *QUIET_PYTHON, CASES, "share_memory_both_ways"), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(), text=True, check=False)
    assert done.returncode != 0 and "share_memory_both_ways" in done.stdout
    with pytest.raises(AssertionError, match="share_memory_both_ways"):
        results(done)


newer_is_slow = pytest.mark.parametrize("version", ["system", pytest.param("2.13", marks=pytest.mark.long)])


# --- Launchers ----------------------------------------------------------------------------------------------------


def launch(*command, size="1m", **more):
    """The results of the trainings, wherever they are in the launcher's output."""
    done = subprocess.run(private(size, PROGRAM, "run", "--quiet", "--", *command), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(**more), text=True, timeout=2 * PATIENCE,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"\b[0-9a-f]{16}\b", done.stdout)  # lines of several ranks may be mixed


def trained(python):
    """The result of the same training without the guard."""
    return plain(python, FORK)["fork file_descriptor train"]


@newer_is_slow
def test_bash_script(version, tmp_path):
    python = python_of(version)
    script = tmp_path / "train.sh"
    script.write_text(textwrap.dedent(f"""\
        #!/bin/bash
        set -euo pipefail
        export OMP_NUM_THREADS=1
        cd {tmp_path}
        ( exec {python} -W ignore {CASES} {" ".join(BOTH)} train ) 2>&1 | tee log &
        wait $!
        grep -q train log
        """))
    script.chmod(0o755)
    assert launch(script) == [trained(python)] * 2


@newer_is_slow
def test_python_m(version):
    python = python_of(version)
    got = launch(python, *QUIET_PYTHON, "-m", "semantics", *BOTH, "train", PYTHONPATH=str(CASES.parent))
    assert got == [trained(python)] * 2


@pytest.mark.long
def test_torchrun(python, tmp_path):
    """Two ranks, each with its own loaders. Under Python 3.11, the launcher of 1.13 needs explicit redirections, and
    knows only 1 and 2."""
    skip_without_torchrun(python)
    ranks = launch(python, *QUIET_PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                   "--redirects=1", "--tee=1", f"--log_dir={tmp_path}", CASES, *BOTH, "train")
    assert ranks == [trained(python)] * 4


LAUNCHER = """\
    import os, subprocess, sys
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2], WORLD_SIZE="2", OMP_NUM_THREADS="1")
    for name in sys.argv[1].split(","):
        environment.pop(name, None)
    ranks = [subprocess.Popen([sys.executable, *sys.argv[3:]], env=dict(environment, RANK=str(rank), LOCAL_RANK=str(rank)),
                              stdout=subprocess.PIPE) for rank in range(2)]
    for rank in ranks:
        sys.stdout.buffer.write(rank.communicate()[0])
    sys.exit(max(rank.returncode for rank in ranks))
    """


@pytest.mark.parametrize("wiped", ["", "LD_PRELOAD", pytest.param("SHMGUARD_SOCKET", marks=pytest.mark.long),
                                   pytest.param("LD_PRELOAD,SHMGUARD_SOCKET", marks=pytest.mark.long)])
def test_accelerate_style_launcher(tmp_path, wiped):
    """Trains under the guard, even if parts of the environment are lost."""
    python = PYTHONS["system"]
    script = tmp_path / "launch.py"
    script.write_text(textwrap.dedent(LAUNCHER))
    got = launch(python, script, wiped, str(free_port()), *QUIET_PYTHON, CASES, *BOTH, "train")
    assert got == [trained(python)] * 4


@pytest.mark.long
def test_rank_without_the_guard_beside_one_with_it():
    python = PYTHONS["system"]
    command = f"SHMGUARD=off {python} -W ignore {CASES} train & {python} -W ignore {CASES} train; wait $!"
    assert launch("bash", "-c", command, size="2g") == [trained(python)] * 2


def environment_of(python, directory):
    """A Python prefix that sees the same PyTorch and was moved after it was created, as conda-pack does."""
    made, moved = directory / "made", directory / "moved"
    find = "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    torch = subprocess.run([python, "-c", find], stdout=subprocess.PIPE, check=True, text=True)
    subprocess.run([python, "-m", "venv", "--copies", "--without-pip", made], check=True)
    shutil.move(made, moved)
    site = next(moved.glob("lib/python3.*/site-packages"))
    (site / "torch-of-another.pth").write_text(torch.stdout.strip().rpartition("/")[0] + "\n")
    return moved


def libraries_of(python, directory):
    """Copies of libraries that a conda environment brings along, so that they are found first."""
    directory.mkdir()
    maps = subprocess.run([python, "-c", "import torch, bz2, lzma; print(open('/proc/self/maps').read())"],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libbz2.so.1.0", "liblzma.so.5"):
        for path in {line.split()[-1] for line in maps.splitlines() if f"/{name}" in line}:
            shutil.copy(path, directory / name)
    return directory


@newer_is_slow
def test_conda_style_environment(version, tmp_path):
    python = python_of(version)
    moved = environment_of(python, tmp_path)
    libraries = libraries_of(python, tmp_path / "lib")
    assert any(libraries.iterdir())
    activate = f'export PATH={moved}/bin:$PATH CONDA_PREFIX={moved} LD_LIBRARY_PATH={libraries}; exec "$@"'
    got = launch("bash", "-c", activate, "bash", "python", *QUIET_PYTHON, CASES, *BOTH, "train")
    assert got == [trained(python)] * 2
