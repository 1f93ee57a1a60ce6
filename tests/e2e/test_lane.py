# SPDX-License-Identifier: Apache-2.0
"""The lane: the guard's part in Python in every interpreter of this machine, and what it says about itself. That the batches are the same
as without it is in test_semantics.py."""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from conftest import PROGRAM, PROJECT, PYTHONS, SANITIZED

LIBRARY = pathlib.Path(PROGRAM).resolve().parent / "libshmguard-preload.so"
EMBED = LIBRARY.parent / "tests" / "guard" / "embed-python"
STUB = PROJECT / "tests" / "guard" / "loader_stub.py"
TORN = STUB.with_name("torn_messages.py")

pytestmark = pytest.mark.skipif(SANITIZED, reason="an instrumented library cannot be preloaded into a plain program")


def version_of(python):
    done = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, check=False, text=True)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None


def interpreters():
    """One of each version: those in PATH, and those of pyenv."""
    paths = [pathlib.Path("/usr/bin/python3"), *(pathlib.Path(directory) / f"python3.{minor}" for directory in os.get_exec_path()
                                                  for minor in range(6, 20))]
    paths += pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3")
    found = {}
    for path in paths:
        if os.access(path, os.X_OK) and "shims" not in path.parts:
            found.setdefault(version_of(path), path)
    return {version: path for version, path in sorted(found.items()) if version}


INTERPRETERS = interpreters()
each = pytest.mark.parametrize("version", INTERPRETERS, ids=lambda version: "{}.{}".format(*version))


def is_known(version):
    return (3, 8) <= version <= (3, 13)


def stub(python, case, *options, **more):
    done = subprocess.run([python, *options, STUB, case], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": str(LIBRARY), **more}, check=False)
    assert done.returncode == 0 and not re.search("Error|Warning: ", done.stderr), done.stderr[-3000:]
    return done.stdout.splitlines()


@each
@pytest.mark.parametrize("case", ["fork", "spawn", "full_queue"])
def test_every_interpreter(version, case):
    way = "by value" if is_known(version) else "plain"
    expected = {"fork": f"('{way}', {is_known(version)})", "spawn": way, "full_queue": f"(True, '{way}')"}
    assert stub(INTERPRETERS[version], case) == [expected[case]]


@each
def test_queues(version):
    """The sixth message does not fit into the pipe at once."""
    threads = [not is_known(version)] * 5 + [True] * 3
    assert stub(INTERPRETERS[version], "queues") == [str([*threads, "empty", "ended", "closed"])]


@each
def test_isolated_interpreters(version):
    assert stub(INTERPRETERS[version], "fork", "-I", "-S", "-E") == [str(("by value", True) if is_known(version) else ("plain", False))]


RESULTS = {
    "forkserver": ["by value"],
    "twice": ["('by value', 'by value', 'by value')"],
    "late_loader": ["(False, 'by value')"],
    "half_imported": ["by value"],
    "thread": ["by value"],
    "blocked_main_thread": ["True"],
    "nested": ["by value", "by value", "done"],
    "forked": ["by value", "0"],
    "subinterpreter": ["by value"],
    "alarm": ["(0, True)"],
    "exit": ["by value", "ended"],
    "unpicklable": ["(1, 'the end')"],
    "old_torch": ["('plain', True)"],
    "new_torch": ["plain"],
    "other_loop": ["plain"],
    "own_reducer": ["plain"],
    "no_loader": ["('100 locks', False)"],
    "interrupted_get": ["passed on"],
    "fork_of_a_trainer": ["done"],
    "dropped_queues": ["(4, True)"],  # of the loader that is kept, its worker and the queue from it
    "part_of_a_size": ["40"],
}
ENDS = [version for version in INTERPRETERS if is_known(version)]
ENDS = sorted({min(ENDS), max(ENDS)}) if ENDS else []


@pytest.mark.parametrize("version", [*ENDS[-1:], *(pytest.param(version, marks=pytest.mark.long) for version in ENDS[:-1])],
                         ids=lambda version: "{}.{}".format(*version))
@pytest.mark.parametrize("case", RESULTS)
def test_what_programs_do(version, case):
    assert stub(INTERPRETERS[version], case) == RESULTS[case]


@pytest.mark.parametrize("setting", [{"SHMGUARD_LANE": "off"}, {"SHMGUARD": "off"}, {"SHMGUARD_ONLY_WITNESS": "1"}], ids=str)
def test_switched_off(setting):
    assert stub(PYTHONS["system"], "fork", **setting) == ["('plain', False)"]


def test_what_it_costs():
    """A few milliseconds of the processor in a trainer and in its first workers, and less in those that it starts later; the fastest of
    several are those that nothing else got in the way of."""
    guarded, plain = ([[float(line) for line in stub(PYTHONS["system"], "cost", **setting)[:3]] for _ in range(8)]
                      for setting in ({}, {"SHMGUARD_LANE": "off"}))
    trainer, first, later = (min(times[place] for times in guarded) - min(times[place] for times in plain) for place in range(3))
    assert trainer < 4 and first < 8 and later < 2, (trainer, first, later)


@each
def test_embedded_and_finalized(version, tmp_path):
    """A program that ends Python, starts it again, and makes semaphores before, between and after."""
    prefix = INTERPRETERS[version].resolve().parent.parent
    libraries = sorted(prefix.glob("lib/libpython{}.{}*.so.1.0".format(*version)))
    if not libraries:
        pytest.skip("it has no shared libpython")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(f"""\
        import sys, types
        stub = types.ModuleType("loader_stub")
        sys.modules["loader_stub"] = stub
        exec(compile(open({str(STUB)!r}).read(), "loader_stub.py", "exec"), stub.__dict__)
        print(stub.load(), flush=True)
        """))
    done = subprocess.run([EMBED, libraries[0], script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": str(LIBRARY), "PYTHONHOME": str(prefix)}, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["by value" if is_known(version) else "plain", "ended well"]


LOAD = """\
    import sys, torch
    from torch.utils.data import DataLoader
    torch.multiprocessing.set_sharing_strategy(sys.argv[1])
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 40
        def __getitem__(self, index):
            return torch.full((100,), index), torch.full((300_000,), float(index)), index
    for number, batch in enumerate(DataLoader(Numbers(), batch_size=4, num_workers=2)):
        assert [int(value) for value in batch[2]] == [int(row[99]) for row in batch[0]] == [int(row[-1]) for row in batch[1]]
    print(number + 1, [tensor.is_shared() for tensor in batch])
    """


def report_of(tmp_path, python, *options, strategy="file_descriptor"):
    report, script = tmp_path / "report.json", tmp_path / "load.py"
    script.write_text(textwrap.dedent(LOAD))
    done = subprocess.run([PROGRAM, "run", "-v", "--report", report, *options, "--", python, "-W", "ignore", script, strategy],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(report.read_text()), done


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_report(python, tmp_path, strategy):
    report, done = report_of(tmp_path, python, strategy=strategy)
    assert done.stdout == "10 [False, True, False]\n"
    assert report["lane"] == {"active": True, "why": None, "batches": 10, "by_value_bytes": 10 * (4 * 100 * 8 + 4 * 8),
                              "in_segments_bytes": 10 * 4 * 300_000 * 4, "declined": 0}
    assert report["guard"]["batches"] == 10
    assert "batches on the lane: 10 (" in done.stderr


def test_report_when_it_is_off(tmp_path):
    report, done = report_of(tmp_path, PYTHONS["system"], "--lane", "off")
    assert done.stdout == "10 [True, True, True]\n"
    assert report["lane"] == {"active": False, "why": "off", "batches": 0, "by_value_bytes": 0, "in_segments_bytes": 0, "declined": 0}
    assert report["guard"]["batches"] == 10
    report, _ = report_of(tmp_path, PYTHONS["system"], "--no-guard")
    assert (report["lane"]["active"], report["lane"]["why"]) == (False, "no-guard")


def test_report_of_a_job_without_loaders(tmp_path):
    report = tmp_path / "report.json"
    subprocess.run([PROGRAM, "run", "-q", "--report", report, "--", sys.executable, "-c", "import multiprocessing; multiprocessing.Lock()"],
                   check=True)
    assert json.loads(report.read_text())["lane"]["why"] == "no-batches"


MANY = """\
    import resource, time, torch
    from torch.utils.data import DataLoader
    def limit(_):
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    class Lists:
        def __len__(self):
            return 40
        def __getitem__(self, index):
            return [torch.full((131072,), float(index)) for _ in range(10)]
    for number, batch in enumerate(DataLoader(Lists(), batch_size=None, num_workers=4, prefetch_factor=4, collate_fn=lambda batch: batch,
                                              worker_init_fn=limit)):
        if number == 0:
            time.sleep(2)
        assert all((tensor == number).all() for tensor in batch)
    print(number)
    """


def test_too_many_descriptors_on_their_way(here, ordinary):
    """The kernel counts those of a user, unless it is root, and refuses more than the sending process may have open."""
    done = ordinary(here).shmguard("run", "-q", "--", PYTHONS["system"], "-W", "ignore", "-c", textwrap.dedent(MANY))
    assert (done.returncode, done.stdout) == (0, b"39\n"), done


def test_a_refusal_costs_nothing(here, tmp_path):
    """The lane does without memory that is not there: an array goes through the pipe, as without it."""
    script = """\
        import numpy, time
        from torch.utils.data import DataLoader
        class Arrays:
            def __len__(self):
                return 6
            def __getitem__(self, index):
                return numpy.full(20 << 20, index, numpy.uint8)
        for number, batch in enumerate(DataLoader(Arrays(), batch_size=None, num_workers=2, collate_fn=lambda batch: batch)):
            time.sleep(0.5)
            assert (batch == number).all()
        """
    done = here.shmguard("run", "--budget", "16M", "--report", tmp_path / "r", "--", PYTHONS["system"], "-W", "ignore", "-c",
                         textwrap.dedent(script))
    report = json.loads((tmp_path / "r").read_text())
    assert (done.returncode, report["guard"]["refused"]) == (0, 0), done


def test_no_message_is_torn(python):
    """Workers are killed while they send. What they have sent is whole."""

    def torn(lane, *options):
        done = subprocess.run([PROGRAM, "run", "-q", "--lane", lane, "--", python, "-W", "ignore", TORN, *options], stdout=subprocess.PIPE,
                              timeout=120, check=True, text=True)
        return int(done.stdout.split()[0])

    assert torn("auto", "--rounds", "10") == 0
    assert torn("auto", "--rounds", "10", "--arrays") == 0
    assert torn("off", "--rounds", "6", "--arrays") > 0  # the test can fail: without the lane they are larger than the pipe
