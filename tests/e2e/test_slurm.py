# SPDX-License-Identifier: Apache-2.0
"""A real Slurm with two nodes (cluster.py), and real trainings as its jobs: `srun shmguard run`, the plugin (srun --shmguard), the TaskProlog
and the Epilog; and what jobs leave behind that are killed."""

import json
import os
import re
import time

import pytest

from cluster import PLUGIN, cluster
from conftest import MIB, PYTHONS, SANITIZED, wait_until

pytestmark = [pytest.mark.xdist_group("slurm"),  # all share one
              pytest.mark.skipif(SANITIZED, reason="Slurm's own processes have no sanitizer")]

PYTHON = PYTHONS["system"]
EATER = "x = []\nwhile True: x.append(bytearray(b'x' * (8 << 20)))"


@pytest.fixture(scope="module")
def slurm(public):
    with cluster(public) as made:
        yield made


@pytest.fixture
def plugin(slurm):
    if not PLUGIN.exists():
        pytest.skip("built without the plugin: libslurm-dev is missing")
    return slurm


@pytest.fixture(autouse=True)
def nothing_is_left(slurm):
    yield
    slurm.root.run("scancel", "-u", "trainer")
    wait_until(lambda: not slurm.left(), f"nothing is left: {slurm.left()}")
    wait_until(lambda: not slurm.root.run("squeue", "-h").stdout, "no job is left")


def train(slurm, *options):
    return [PYTHON, slurm.train, "--workers", "1", *(options or ("--steps", "20", "--side", "64"))]


def forever(slurm, *options):
    return train(slurm, "--hold", "1000", "--side", "64", *options)


def report(slurm, name):
    """The report of one task, in the job's directory."""
    return json.loads((slurm.work / name).read_text())


def last_job(slurm):
    """The number of the job that was submitted last."""
    return max(map(int, re.findall(rb"JobId=(\d+)", slurm.root.run("scontrol", "show", "job").stdout)))


def wait_for_line(path, text):
    wait_until(lambda: path.exists() and text in path.read_text(), f"{text} in {path}")


def test_without_any_of_them(slurm):
    """srun shmguard run: the budget comes from the step's limit and not from the node's memory."""
    done = slurm.srun("--mem=600M", slurm.program, "run", "--report", "plain.json", "--", *train(slurm))
    assert done.returncode == 0 and b"finished 20 steps" in done.stdout, done
    guard = report(slurm, "plain.json")["guard"]
    assert guard["active"] and guard["segments_reused"] > 0
    if not slurm.constrained:
        pytest.skip("control groups of version 1 cannot be made here, so Slurm does not limit memory")
    assert guard["budget_from"] == "cgroup" and 300 * MIB < guard["budget_bytes"] < 450 * MIB


def test_a_limit_that_only_slurm_knows(plugin):
    """Two tasks share what the step has on this node."""
    done = plugin.srun("--shmguard", "-N1", "-n2", "--mem=400M", "true")
    assert done.returncode == 0, done
    for task in range(2):
        guard = report(plugin, f"shmguard-{last_job(plugin)}.0.{task}.json")["guard"]
        assert guard["budget_from"] == "slurm" and guard["budget_bytes"] == 150 * MIB


def test_the_option_on_two_nodes(plugin):
    done = plugin.srun("--shmguard=budget=200M,record", "-N2", "-n2", *train(plugin))
    assert done.returncode == 0 and done.stdout.count(b"finished 20 steps") == 2, done
    assert done.stderr.count(b"kept out of /dev/shm") == 1  # one summary a step
    job = last_job(plugin)
    for task in range(2):
        guard = report(plugin, f"shmguard-{job}.0.{task}.json")["guard"]
        assert guard["active"] and guard["segments_reused"] > 0 and guard["budget_from"] == "option"
        assert guard["budget_bytes"] == 200 * MIB
        assert (plugin.work / f"shmguard-{job}.0.{task}.db").stat().st_size > 0
    assert "AdminComment" not in plugin.job(job)


def test_the_task_is_what_it_would_be(plugin):
    """Its environment, limits, group, directory, signals, exit code and standard streams, and what a TaskProlog has set."""
    look = ("cat; echo $PROLOG_SAYS; ulimit -n; ulimit -c; pwd; id -u; umask; cat /proc/self/status | grep -E 'Sig(Blk|Ign)'; "
            "env | grep ^SLURM_ | grep -vE 'PID|PORT|JOB_?ID|STEP_?ID' | sort; exit 42")
    user_prolog = plugin.work / "prolog"
    user_prolog.write_text("#!/bin/sh\necho export PROLOG_SAYS=hello\n")
    user_prolog.chmod(0o755)
    seen = []
    for option in [], ["--shmguard=quiet"]:
        done = plugin.user.run("sh", "-c", 'ulimit -n 777; ulimit -c 12; exec srun -w n1 "$@"', "sh", *option, f"--task-prolog={user_prolog}",
                               "sh", "-c", look, input=b"typed\n")
        assert done.returncode == 42, done
        seen.append(done.stdout.decode().splitlines())
    assert seen[0][:4] == ["typed", "hello", "777", "12"]
    assert seen[0] == seen[1]
    plain = plugin.srun("sh", "-c", "kill -SEGV $$").returncode
    guarded = plugin.srun("--shmguard=quiet", "sh", "-c", "kill -SEGV $$").returncode
    assert guarded == plain == 139


def test_it_never_makes_a_task_fail(plugin, tmp_path):
    job = ["--shmguard", "sh", "-c", "echo it ran"]
    for program, why in {"/nonexistent/shmguard": b"No such file", "/etc/passwd": b"Permission denied"}.items():
        plugin.plugin(program)
        done = plugin.srun(*job)
        assert done.returncode == 0 and done.stdout == b"it ran\n", done
        lines = [line for line in done.stderr.splitlines() if b"shmguard" in line]
        assert len(lines) == 1 and why in lines[0] and b"runs without shmguard" in lines[0]
    broken = plugin.directory / "broken"
    broken.write_text("no program\n")
    broken.chmod(0o755)
    plugin.plugin(broken)
    done = plugin.srun(*job)
    assert done.returncode == 0 and done.stdout == b"it ran\n" and b"Exec format error" in done.stderr
    plugin.plugin(plugin.program)
    done = plugin.srun("-D", "/", *job)  # no report can be written there
    assert done.returncode == 0 and done.stdout == b"it ran\n" and b"no report is written, because / cannot" in done.stderr
    for wrong, why in {"budget=x": b"is not a size", "retry=3": b"unknown option 'retry'"}.items():
        done = plugin.srun(f"--shmguard={wrong}", "true")
        assert done.returncode != 0 and why in done.stderr


def test_a_batch_job_and_its_steps(plugin):
    """Each has its own supervisor: a step has its own limit."""
    command = " ".join(map(str, train(plugin)))
    job = plugin.submit(f"{command}\nsrun --mem=500M true\nsrun --shmguard=off true", "--shmguard", "--mem=900M", "-o", "batch.out")
    plugin.wait(job)
    batch = report(plugin, f"shmguard-{job}.batch.0.json")
    step = report(plugin, f"shmguard-{job}.0.0.json")
    assert batch["guard"]["batches"] == 20 and step["guard"]["active"], (plugin.work / "batch.out").read_text()
    assert not (plugin.work / f"shmguard-{job}.1.0.json").exists()  # switched off
    assert not step["guard"]["joined"] and step["guard"]["budget_bytes"] < batch["guard"]["budget_bytes"]


def test_an_allocation(plugin):
    done = plugin.user.run("salloc", "--shmguard", "--mem=500M", "srun", "true", timeout=120)
    assert done.returncode == 0, done
    assert report(plugin, f"shmguard-{last_job(plugin)}.0.0.json")["guard"]["active"]


def test_out_of_memory(plugin):
    if not plugin.constrained:
        pytest.skip("control groups of version 1 cannot be made here, so Slurm does not limit memory")
    done = plugin.srun("--shmguard", "--mem=200M", "sh", "-c", f'{PYTHON} -c "{EATER}"')
    assert done.returncode != 0 and b"Out Of Memory" in done.stderr, done
    job = last_job(plugin)
    assert report(plugin, f"shmguard-{job}.0.0.json")["cause"]["id"] == "cgroup-oom"
    wait_until(lambda: plugin.job(job).get("AdminComment", "").startswith("shmguard: step 0: cgroup-oom "), "the comment is there")


def test_the_task_prolog(slurm):
    """The guard without a supervisor, for jobs that ask for it, and for no others."""
    def mapped(*prefix):
        done = slurm.srun(*prefix, PYTHON, "-c", "print(open('/proc/self/maps').read().count('libshmguard-preload.so') > 0)")
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout == b"True\n"

    assert mapped("--export=ALL,SHMGUARD=on")
    assert not mapped() and not mapped("--export=ALL,SHMGUARD=off")
    # A batch has 66 MiB, and /dev/shm has 64.
    done = slurm.srun("--export=ALL,SHMGUARD=on", *train(slurm, "--steps", "3", "--side", "600", "--batch", "64"))
    assert done.returncode == 0 and b"finished 3 steps" in done.stdout, done


@pytest.mark.parametrize("how", ["plugin", "plain", *(pytest.param(how, marks=pytest.mark.long) for how in ("run", "prolog"))])
def test_a_cancelled_job(slurm, how):
    """With names in /dev/shm where there is no supervisor: the Epilog removes them as soon as the user's last process is gone."""
    if how == "plugin" and not PLUGIN.exists():
        pytest.skip("built without the plugin: libslurm-dev is missing")
    options = {"plugin": ["--shmguard"], "prolog": ["--export=ALL,SHMGUARD=on"]}.get(how, [])
    command = " ".join(map(str, forever(slurm, "--strategy", "file_system")))
    prefix = f"{slurm.program} run --report cancelled.json -- " if how == "run" else ""
    job = slurm.submit(f"{prefix}{command}", *options, "-o", f"cancelled-{how}.out")
    wait_for_line(slurm.work / f"cancelled-{how}.out", "holding")
    names = [name for name in slurm.left() if name.startswith("torch_")]
    assert how == "prolog" or bool(names) == (how == "plain"), slurm.left()
    slurm.user.run("scancel", job)
    slurm.wait(job, "CANCELLED")


def test_killed_at_once(plugin):
    """SIGKILL, as at the end of KillWait, and as from the OOM killer."""
    job = plugin.submit(" ".join(map(str, forever(plugin))), "--shmguard", "-o", "killed.out")
    wait_for_line(plugin.work / "killed.out", "holding")
    plugin.user.run("scancel", "--full", "--signal=KILL", job)
    wait_until(lambda: plugin.job(job)["JobState"] not in ("RUNNING", "COMPLETING"), "the job ends")


def test_an_array_on_shared_nodes(plugin):
    """Six jobs, of which each node has several at a time."""
    command = " ".join(map(str, train(plugin)))
    array = plugin.submit(f"[ $SLURM_ARRAY_TASK_ID -gt 0 ] || {command}", "--shmguard", "--array=0-5", "--mem=600M", "-o", "array-%a.out")
    wait_for_line(plugin.work / "array-0.out", "finished 20 steps")
    wait_until(lambda: len(list(plugin.work.glob("shmguard-*.batch.0.json"))) >= 6, f"all jobs of {array} end")


@pytest.mark.long
def test_a_requeue(plugin):
    """Slurm starts it again after two minutes."""
    job = plugin.submit(f"echo run $SLURM_RESTART_COUNT; [ -n \"$SLURM_RESTART_COUNT\" ] || {' '.join(map(str, forever(plugin)))}",
                        "--shmguard", "--requeue", "-o", "requeued.out", "--open-mode=append")
    wait_for_line(plugin.work / "requeued.out", "holding")
    plugin.root.run("scontrol", "requeue", job)
    wait_until(lambda: plugin.job(job)["JobState"] == "PENDING", "it is requeued")
    wait_until(lambda: not plugin.left(), "nothing is left of the first run")
    wait_until(lambda: "run 1" in (plugin.work / "requeued.out").read_text(), "it runs again")
    plugin.wait(job)


def test_epilog_spares_others(slurm):
    """What other users have, what a process has open, and what has another name stays."""
    for name, uid in {"torch_1_2_3": 4242, "psm_f2e50001": 4242, "dataset.bin": 4242, "torch_4_5_6": 4243}.items():
        path = slurm.root.shm / name
        path.write_bytes(b"x" * 4096)
        os.chown(path, uid, uid)
    try:
        assert slurm.srun("true").returncode == 0
        wait_until(lambda: sorted(path.name for path in slurm.root.shm.iterdir()) == ["dataset.bin", "torch_4_5_6"], "the Epilog cleans")
        time.sleep(0.2)
        assert len(list(slurm.root.shm.iterdir())) == 2
    finally:
        for path in slurm.root.shm.iterdir():
            path.unlink()


@pytest.mark.long
def test_a_time_limit(plugin):
    """Slurm asks the tasks to end (SIGTERM), and kills them two seconds later."""
    job = plugin.submit(" ".join(map(str, forever(plugin))), "--shmguard", "--time=1", "-o", "limit.out")
    wait_until(lambda: plugin.job(job)["JobState"] == "TIMEOUT", "the time limit")
    told = report(plugin, f"shmguard-{job}.batch.0.json")
    assert told["cause"]["id"] == "killed" and told["exit"]["signal"] in (9, 15)


def test_a_job_with_its_own_shm(public):
    """job_container/tmpfs: each job has its own /dev/shm, and doctor says so."""
    for _ in range(3):  # on a busy machine, Slurm 22.05 may fail to start the step that makes the mounts, and then always fails
        with cluster(public, "JobContainerType=job_container/tmpfs\nPrologFlags=contain\n") as own:
            done = own.srun(own.program, "doctor", "--json")
        if b"not ready" not in done.stderr:
            break
    else:
        pytest.skip(f"Slurm could not start a job with its own mounts: {done.stderr.decode()}")
    assert done.stdout, done
    answer = json.loads(done.stdout)
    assert answer["environment"]["slurm"] and answer["environment"]["shm_owner"] == "job", done
    assert "shm-of-job" in [finding["id"] for finding in answer["findings"]]
