# SPDX-License-Identifier: Apache-2.0
"""Trainings on several nodes: real torchrun over two network namespaces, mpirun, and what report says of their recordings together."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import MIB, PROGRAM, PYTHONS, Machine, needs_root
from nodes import JOB, finish, torchrun, two_nodes

PYTHON = PYTHONS["2.13"]
needs_launcher = pytest.mark.skipif(not os.access(PYTHON, os.X_OK), reason="PyTorch 2.13 is not there: run scripts/torch-2.13")
QUICK = "--epochs", "2", "--steps", "4", "--side", "64", "--workers", "1"


def merged(directory, *options):
    done = subprocess.run([PROGRAM, "report", directory, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 0, done
    return done.stdout.decode()


def job_report(directory):
    report = json.loads(merged(directory, "--json"))
    assert report["schema"] == "shmguard.report/1"
    return report


def train(nodes, directory, *options, run=((), ()), launcher=()):
    jobs = [node.popen(PROGRAM, "run", "--record", directory / f"node-{number}.db", "--report", directory / f"node-{number}.json",
                       *run[number], "--", *torchrun(PYTHON, number, "--rdzv_id=fleet", *launcher), JOB, *options,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for number, node in enumerate(nodes)]
    return finish(jobs, 200)


@needs_root
@needs_launcher
@pytest.mark.slow
def test_the_rank_with_less_memory_is_late(tmp_path):
    """Five batches of 311 MB are ready on one node; the other one's budget, three quarters of its limit, has room for three."""
    with two_nodes((None, 1500 * MIB)) as nodes:
        ended = train(nodes, tmp_path, "--epochs", "2", "--steps", "8", "--side", "3600", "--pause", "0.02")
    assert [code for code, _ in ended] == [0, 0], ended
    report = job_report(tmp_path)
    assert [(rank["rank"], rank["node"], rank["node_number"], rank["job"], rank["attempt"]) for rank in report["ranks"]] == [
        (0, "node-0", 0, "fleet", 1), (1, "node-1", 1, "fleet", 1)]
    first, second = report["ranks"]
    assert not first["straggler"] and second["straggler"] and second["why"] == "room", report["ranks"]
    assert second["waits"]["room"] > 2 > first["waits"]["room"]
    assert second["waits"]["loader"] > first["waits"]["loader"]
    assert report["clock"]["basis"] == "marks" and second["marks"] == 3
    assert abs(second["clock_offset"]) < 2, "both have the same clock"
    assert [node["cgroup"]["limit"] for node in report["nodes"]] == [None, 1500 * MIB]
    text = merged(tmp_path)
    assert "Rank 1 (node-1 (1)) is late." in text and "waits for room" in text
    for number in range(2):
        run = json.loads((tmp_path / f"node-{number}.json").read_text())
        assert (run["node"], run["attempt"], run["restarts"]["by"]) == (f"node-{number}", 1, "nobody")


@needs_root
@needs_launcher
@pytest.mark.long
def test_a_killed_rank_is_started_again_by_the_one_in_charge(tmp_path):
    """Either by torchrun, or by the shmguard of each node: never by both."""
    told = tmp_path / "told"
    told.mkdir()
    with two_nodes() as nodes:
        ended = train(nodes, told, *QUICK, "--kill", "1", run=(("--retry", "2"),) * 2, launcher=("--max_restarts=1",))
    assert [code for code, _ in ended] == [0, 0], ended
    assert all("torchrun restarts the whole job itself (up to 1 times)" in said for _, said in ended), ended
    report = job_report(told)
    assert [(rank["rank"], rank["attempt"]) for rank in report["ranks"]] == [(0, 2), (1, 2)]
    run = json.loads((told / "node-1.json").read_text())
    assert len(run["attempts"]) == 1 and run["restarts"] == {"by": "launcher", "launcher": "torchrun"}


@needs_root
@needs_launcher
@pytest.mark.long
def test_a_whole_job_is_started_again_on_both_nodes(tmp_path):
    """One node may meet the other's old rendezvous, and needs an attempt more."""
    with two_nodes() as nodes:
        ended = train(nodes, tmp_path, *QUICK, "--kill", "1", run=(("--retry", "5"),) * 2)
    assert [code for code, _ in ended] == [0, 0], ended
    for number in range(2):
        run = json.loads((tmp_path / f"node-{number}.json").read_text())
        assert len(run["attempts"]) == run["attempt"] >= 2 and run["restarts"] == {"by": "shmguard", "launcher": None}, run


@needs_launcher
def test_one_rank_is_not_started_again_alone(tmp_path):
    script = tmp_path / "fail.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = subprocess.run([PYTHON, "-m", "torch.distributed.run", "--nproc_per_node=2", "--no_python", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0",
                           PROGRAM, "run", "--retry", "3", "--report", tmp_path / "run.json", "--", PYTHON, script],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
    said = done.stderr.decode()
    assert done.returncode == 1 and "one rank cannot be restarted alone" in said, said
    run = json.loads((tmp_path / "run.json").read_text())
    assert len(run["attempts"]) == 1 and run["restarts"] == {"by": "nobody", "launcher": "torchrun"}
    assert run["rank"] in (0, 1) and run["ranks"] == 2


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not there")
def test_ranks_of_mpirun(tmp_path):
    """Each rank has a recording of its own, whose name has the rank."""
    script = tmp_path / "wait.py"
    script.write_text("import time\ntime.sleep(1.5)\n")
    line = f'exec "{PROGRAM}" run --quiet --record "{tmp_path}/$OMPI_COMM_WORLD_RANK.db" -- "{sys.executable}" "{script}"'
    done = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "sh", "-c", line], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 0, done
    report = job_report(tmp_path)
    assert [rank["rank"] for rank in report["ranks"]] == [0, 1]
    assert report["jobs"] == 1 and report["job"], "Open MPI's name of the job"
    assert report["clock"]["basis"] == "wall-clock" and "no marks in common" in report["clock"]["note"]


def test_a_directory_without_recordings(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    done = subprocess.run([PROGRAM, "report", tmp_path], stderr=subprocess.PIPE, check=False, timeout=10)
    assert done.returncode == 65 and b"there is no recording in the directory" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_srun_by_its_environment(tmp_path):
    """What srun sets; Slurm itself is not needed for that."""
    for rank in range(2):
        names = {"SLURM_JOB_ID": "4711", "SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_NODEID": str(rank),
                 "SLURMD_NODENAME": f"n{rank}", "SLURM_RESTART_COUNT": "1"}
        done = Machine().run("env", *(f"{name}={value}" for name, value in names.items()), PROGRAM, "run", "--quiet", "--record",
                             tmp_path / f"{rank}.db", "--", "sleep", "1.2")
        assert done.returncode == 0, done
    report = job_report(tmp_path)
    assert [(rank["rank"], rank["node"], rank["node_number"], rank["attempt"], rank["job"]) for rank in report["ranks"]] == [
        (0, "n0", 0, 2, "4711"), (1, "n1", 1, 2, "4711")]
