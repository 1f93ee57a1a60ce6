# SPDX-License-Identifier: Apache-2.0
"""What is wrong here: doctor on machines that are really broken in one way each. Findings are compared by id, for the
machine below may have troubles of its own."""

import contextlib
import os
import pathlib
import resource
import shlex
import subprocess
import tempfile

import pytest

from conftest import MIB, PYTHONS, ROOTS, children, control_group, holder, mount_namespace, needs_root, prepared_namespace, wait_until

PYTHON = PYTHONS["system"]
GIB = 1 << 30


def commands(finding):
    return [fix["command"] for fix in finding["fixes"] if fix["command"]]


def shm_findings(report):
    """Findings about the mount. What says that all is well is none, nor is what follows from the jobs."""
    return {id for id in report["by_id"] if id.startswith("shm-")} - {"shm-need", "shm-share-of-memory"}


# The mount


@needs_root
def test_64_mb_is_critical_and_the_fix_mends_it(small_shm):
    report = small_shm.alone().doctor()
    finding = report["by_id"]["shm-too-small"]
    assert finding["severity"] == report["verdict"] == "critical"
    assert "64.0 MiB" in finding["title"] and "64.0 MiB" in finding["evidence"]
    assert report["shm"]["size"] == 64 * MIB and report["shm"]["used"] == 0
    assert report["environment"]["can_remount"]
    assert ("shmguard run" in " ".join(commands(finding))) == report["environment"]["guard_ready"]
    assert finding["fixes"][0]["needs"] == "nothing"

    remount = next(fix for fix in finding["fixes"] if "mount -o remount" in (fix["command"] or ""))
    assert remount["needs"] == "root"
    small_shm.run("sh", "-ec", remount["command"])
    mended = small_shm.alone().doctor()
    assert mended["shm"]["size"] >= GIB
    assert "shm-too-small" not in mended["by_id"]


@needs_root
def test_a_roomy_mount_is_fine(private_shm):
    report = private_shm.alone().doctor()
    assert shm_findings(report) == set()
    assert report["shm"] == {**report["shm"], "size": 2 * GIB, "used": 0, "available": 2 * GIB}
    fs = os.statvfs(private_shm.shm)
    assert (report["shm"]["inodes"], report["shm"]["inodes_free"]) == (fs.f_files, fs.f_ffree)


@needs_root
def test_a_full_mount(small_shm):
    filled = small_shm.run("dd", "if=/dev/zero", "of=/dev/shm/ballast", "bs=1M")
    assert b"No space left" in filled.stderr
    report = small_shm.doctor()
    finding = report["by_id"]["shm-nearly-full"]
    assert finding["severity"] == "critical" and "100% full" in finding["title"]
    assert "64.0 MiB of 64.0 MiB" in finding["evidence"]
    assert report["shm"]["available"] == 0
    assert "shmguard ps --segments" in commands(finding)

    os.truncate(small_shm.shm / "ballast", 55 * MIB)  # 86 %
    assert small_shm.doctor()["by_id"]["shm-nearly-full"]["severity"] == "warning"
    os.truncate(small_shm.shm / "ballast", 40 * MIB)
    assert "shm-nearly-full" not in small_shm.doctor()["by_id"]


@needs_root
def test_no_inodes_left():
    with mount_namespace("size=2g,nr_inodes=100") as machine:
        assert "shm-inodes-low" not in machine.doctor()["by_id"]
        for i in range(96):
            (machine.shm / f"file{i}").touch()
        report = machine.doctor()
        finding = report["by_id"]["shm-inodes-low"]
        assert finding["severity"] == "critical"
        assert f"{100 - report['shm']['inodes_free']} of 100 inodes" in finding["evidence"]
        assert shm_findings(report) == {"shm-inodes-low"}

        remount = next(command for command in commands(finding) if "nr_inodes=" in command)
        machine.run("sh", "-ec", remount)
        assert "shm-inodes-low" not in machine.doctor()["by_id"]


@needs_root
def test_inodes_without_a_limit_are_not_low():
    with mount_namespace("size=2g,nr_inodes=0") as machine:
        report = machine.doctor()
        assert shm_findings(report) == set()
        assert report["shm"]["inodes_free"] is None


NO_DEV_SHM = """
mount -t tmpfs tmpfs /dev
mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/full c 1 7; mknod -m 666 /dev/urandom c 1 9
ln -s /proc/self/fd /dev/fd
"""


@needs_root
def test_no_dev_shm():
    with prepared_namespace(NO_DEV_SHM) as machine:
        report = machine.doctor()
        finding = report["by_id"]["shm-missing"]
        assert finding["severity"] == "critical"
        assert report["shm"]["state"] == "absent"
        assert shm_findings(report) == {"shm-missing"}
        assert machine.json("ps")["attributed"] == 0
        refused = machine.shmguard("clean")
        assert refused.returncode == 69 and refused.stdout == b"" and b"/dev/shm" in refused.stderr

        mount = next(command for command in commands(finding) if "mount -t tmpfs" in command)
        machine.run("sh", "-ec", mount)
        mended = machine.doctor()
        assert mended["shm"]["state"] == "ok" and "shm-missing" not in mended["by_id"]


@needs_root
def test_not_a_tmpfs():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        kind = subprocess.run(["stat", "-f", "-c", "%T", directory], stdout=subprocess.PIPE, check=True).stdout
        if kind.strip() in (b"tmpfs", b"ramfs"):
            pytest.skip("/var/tmp is a tmpfs: no directory of a disk to put at /dev/shm")
        with prepared_namespace(f"mount --bind {shlex.quote(directory)} /dev/shm") as machine:
            report = machine.doctor()
            finding = report["by_id"]["shm-missing"]
            assert "not a tmpfs" in finding["title"] and finding["severity"] == "warning"
            assert report["shm"]["state"] == "not-tmpfs"
            refused = machine.shmguard("clean")
            assert refused.returncode == 69 and b"not a tmpfs" in refused.stderr


@needs_root
def test_read_only():
    with mount_namespace("size=2g,ro") as machine:
        report = machine.doctor()
        finding = report["by_id"]["shm-missing"]
        assert finding["severity"] == "critical" and "read-only" in finding["evidence"]
        machine.run("sh", "-ec", next(command for command in commands(finding) if "remount,rw" in command))
        assert "shm-missing" not in machine.doctor()["by_id"]


@needs_root
def test_not_writable_for_this_user(ordinary):
    with mount_namespace("size=2g,mode=755") as machine:
        assert "shm-missing" not in machine.doctor()["by_id"]
        finding = ordinary(machine).doctor()["by_id"]["shm-missing"]
        assert finding["severity"] == "critical" and "may not create files" in finding["evidence"]


# Jobs


@needs_root
def test_a_slurm_job_with_its_own_mounts():
    """As job_container/tmpfs makes them: BasePath/JOB/.JOB/_tmp over /tmp, and a plain tmpfs over /dev/shm."""
    prepare = """
        mount -t tmpfs tmpfs /mnt
        mkdir -p /mnt/base/4242/.4242/_tmp
        mount --bind /mnt/base/4242/.4242/_tmp /mnt
        mount -t tmpfs tmpfs /dev/shm
    """
    with prepared_namespace(prepare) as machine:
        assert machine.doctor()["environment"]["shm_owner"] is None
        job = machine.within("env", "SLURM_JOB_ID=4242")
        report = job.doctor()
        assert report["environment"]["slurm"] and report["environment"]["shm_owner"] == "job"
        assert "job_container/tmpfs" in report["by_id"]["shm-of-job"]["evidence"]
        assert b"in a Slurm job, with its own /dev/shm" in b" ".join(job.shmguard("doctor").stdout.split())


@needs_root
def test_a_job_that_outgrows_its_mount(small_shm, python):
    """Five batches of 10 MiB lie in 64 MB while four workers wait: a longer epoch would have nine of them."""
    with small_shm.training(python, workers=4, steps=5, batch=40, side=295) as trainer:
        batch = 40 * 3 * 295 * 295
        report = small_shm.doctor("--pid", trainer)
        finding = report["by_id"]["shm-too-small"]
        assert finding["severity"] == "critical" and "too small for the running job" in finding["title"]
        assert f"pid {trainer} holds" in finding["evidence"] and "4 workers" in finding["evidence"]
        assert "Estimated: a batch is 10.0 MiB and up to 9 are in memory at once" in finding["evidence"]
        assert any("num_workers=" in fix["what"] for fix in finding["fixes"])
        remount = next(command for command in commands(finding) if "mount -o remount" in command)
        small_shm.run("sh", "-ec", remount)
        mended = small_shm.doctor("--pid", trainer)
        assert mended["shm"]["size"] >= 1.3 * 9 * batch
        assert "shm-too-small" not in mended["by_id"]
        assert "large enough" in mended["by_id"]["shm-need"]["title"]


def of_the_job(report, trainer):
    """What a report says that depends on the job alone, not on the moment."""
    need = report["by_id"]["shm-need"]
    assert f"pid {trainer} holds" in need["evidence"]
    return need["evidence"], shm_findings(report), "workers-exceed-cpus" in report["by_id"], report["limits"]


@needs_root
def test_one_job_by_any_of_its_processes(private_shm, here):
    with private_shm.training(PYTHON) as one, private_shm.training(PYTHON, settle=False) as two:
        worker = next(p["pid"] for p in private_shm.json("ps", "--pid", one)["processes"] if p["role"] == "worker")
        by_trainer = of_the_job(private_shm.doctor("--pid", one), one)
        assert of_the_job(private_shm.doctor("--pid", worker), one) == by_trainer
        assert f"pid {two} " not in by_trainer[0]

        # Seen from a machine with another /dev/shm, its size is nobody's guess.
        outside = here.doctor("--pid", one)
        assert any(line.startswith("shm-too-small: 1 job keeps its batches in its own /dev/shm") for line in outside["skipped"])
        assert "shm-need" not in outside["by_id"]

        # Of a process that does not train, only the machine can be judged.
        idle = private_shm.doctor("--pid", private_shm.pid)
        assert any(line.startswith("pid:") and str(private_shm.pid) in line for line in idle["skipped"])
        assert "shm-need" not in idle["by_id"]


@needs_root
def test_a_job_nearly_out_of_descriptors(private_shm):
    with private_shm.training(PYTHON) as trainer:
        assert "open-files-low" not in private_shm.doctor("--pid", trainer)["by_id"]
        opened = len(os.listdir(f"/proc/{trainer}/fd"))
        hard = resource.prlimit(trainer, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(trainer, resource.RLIMIT_NOFILE, (opened * 10 // 9, hard))
        report = private_shm.doctor("--pid", trainer)
        finding = report["by_id"]["open-files-low"]
        assert finding["severity"] == "warning"
        assert f"pid {trainer} (trainer) has {opened} of {opened * 10 // 9} files open" in finding["evidence"]
        assert report["limits"]["open_files_soft"] == opened * 10 // 9
        assert report["limits"]["open_files_hard"] == hard

        resource.prlimit(trainer, resource.RLIMIT_NOFILE, (opened, hard))
        finding = private_shm.doctor("--pid", trainer)["by_id"]["open-files-low"]
        assert finding["severity"] == "critical"
        raise_it = next(command for command in commands(finding) if "prlimit" in command)
        private_shm.run("sh", "-ec", raise_it)
        assert resource.prlimit(trainer, resource.RLIMIT_NOFILE)[0] > opened
        assert "open-files-low" not in private_shm.doctor("--pid", trainer)["by_id"]


@needs_root
def test_limits_are_those_of_the_process_asked_about(private_shm):
    low = private_shm.within("prlimit", "--nofile=200:300")
    limits = low.doctor()["limits"]
    assert (limits["open_files_soft"], limits["open_files_hard"]) == (200, 300)
    limits = low.doctor("--pid", private_shm.pid)["limits"]
    assert (limits["open_files_soft"], limits["open_files_hard"]) == resource.prlimit(private_shm.pid, resource.RLIMIT_NOFILE)


@needs_root
def test_more_workers_than_cpus(private_shm):
    cpus = sorted(os.sched_getaffinity(0))
    with private_shm.within("taskset", "-c", cpus[0]).training(PYTHON, workers=2) as trainer:
        report = private_shm.doctor("--pid", trainer)
        finding = report["by_id"]["workers-exceed-cpus"]
        assert finding["severity"] == "warning"
        assert "2 workers of 1 trainer are running. 1 CPU is granted" in finding["evidence"]
        assert any("num_workers=1 " in fix["what"] for fix in finding["fixes"])

        if len(cpus) >= 2:
            for pid in [trainer, *children(trainer)]:
                os.sched_setaffinity(pid, cpus[:2])
            assert "workers-exceed-cpus" not in private_shm.doctor("--pid", trainer)["by_id"]


# Control groups


def group_used(directory):
    for name in ["memory.usage_in_bytes", "memory.current"]:
        if (directory / name).exists():
            return int((directory / name).read_text())
    raise FileNotFoundError(directory)


@needs_root
def test_the_tightest_group_limits(private_shm):
    with control_group(private_shm, 300 * MIB) as (outer, directory):
        report = outer.doctor()
        assert report["memory"]["cgroup_limit"] == 300 * MIB
        assert 0 < report["memory"]["cgroup_used"] < 100 * MIB
        with holder(outer, "kept = bytearray(b'x') * (50 << 20)"), \
                control_group(private_shm, 500 * MIB, directory) as (inner, _):
            memory = inner.doctor()["memory"]
            assert memory["cgroup_limit"] == 300 * MIB
            # What the program itself takes in there is counted, and gone when we look; a sanitizer makes that several MiB.
            assert memory["cgroup_used"] == pytest.approx(group_used(directory), abs=16 * MIB), "of the group that limits"
        with control_group(private_shm, 200 * MIB, directory) as (inner, _):
            assert inner.doctor()["memory"]["cgroup_limit"] == 200 * MIB


FILL = """
import sys
used, goal, kept = sys.argv[1], int(sys.argv[2]), []
while int(open(used).read()) < goal:
    kept.append(bytearray(b"x") * (1 << 19))
"""


@needs_root
@pytest.mark.parametrize("share, severity", [(0.92, "warning"), (0.97, "critical")])
def test_a_group_near_its_limit(private_shm, share, severity):
    limit = 512 * MIB
    with control_group(private_shm, limit) as (inside, directory):
        assert "cgroup-near-limit" not in inside.doctor()["by_id"]
        usage = next(directory / n for n in ["memory.usage_in_bytes", "memory.current"] if (directory / n).exists())
        with holder(inside, FILL, usage, int(share * limit)) as pid:
            # From outside, asked about a process in it, and from within where there is room for one more.
            looks = [lambda: private_shm.doctor("--pid", pid), inside.doctor]
            for look in looks if severity == "warning" else looks[:1]:
                report = look()
                finding = report["by_id"]["cgroup-near-limit"]
                assert finding["severity"] == severity
                assert "512.0 MiB" in finding["evidence"] and directory.name in finding["evidence"]
                assert report["memory"]["cgroup_used"] == pytest.approx(group_used(directory), rel=0.05)
            assert "cgroup-near-limit" not in private_shm.doctor("--pid", private_shm.pid)["by_id"]


@needs_root
@pytest.mark.outside  # the kernel's log has these numbers
def test_an_oom_kill_is_told(private_shm, ordinary):
    with control_group(private_shm, 64 * MIB) as (inside, directory):
        for _ in range(3):  # another kill on this machine may come between ours and the look
            victim = inside.popen(PYTHON, "-c", "kept = bytearray(b'x') * (256 << 20)", stderr=subprocess.DEVNULL)
            assert victim.wait() == -9
            report = private_shm.doctor()
            finding = report["by_id"]["oom-recent"]
            if f"pid {victim.pid})" in finding["title"]:
                break
        assert f"killed python3 (pid {victim.pid})" in finding["title"]
        assert finding["severity"] == "warning"
        assert f"the control group /{directory.name} was at its limit" in finding["evidence"]

        # Who may not read the kernel's log is told what counts, and that the rest is unknown.
        blind = ordinary(inside).doctor()["by_id"]["oom-recent"]
        assert blind["severity"] == "warning" and "of this control group" in blind["title"]
        assert "Measured: " in blind["evidence"] and "Unknown: which and when" in blind["evidence"]


# Rights


def environment(machine):
    return machine.doctor()["environment"]


def may(machine, *command):
    return machine.run(*command).returncode == 0


@needs_root
def test_rights_are_what_trying_shows(private_shm, ordinary):
    remount = ["mount", "-o", "remount,size=3g", "/dev/shm"]
    unshare = ["unshare", "-Um", "true"]
    without = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"]
    for machine in [private_shm, private_shm.within(*without), ordinary(private_shm)]:
        rights = environment(machine)
        assert rights["can_remount"] == may(machine, *remount), machine.prefix
        assert rights["user_namespaces"] == may(machine, *unshare), machine.prefix
    assert environment(private_shm)["can_remount"]
    assert not environment(private_shm.within(*without))["can_remount"]
    assert not environment(ordinary(private_shm))["can_remount"]


@needs_root
def test_rights_in_a_user_namespace(private_shm, ordinary):
    user = ordinary(private_shm)
    if not may(user, "unshare", "-Urm", "true"):
        pytest.skip("user namespaces are not allowed here")
    # Root in there, but the mount came from outside.
    inside = user.within("unshare", "-Urm")
    assert not may(inside, "mount", "-o", "remount,size=3g", "/dev/shm")
    assert not environment(inside)["can_remount"] and environment(inside)["user_namespaces"]
    # A mount of its own, and no further namespaces.
    own = user.within("unshare", "-Urm", "sh", "-ec",
                      'mount -t tmpfs -o size=64m tmpfs /dev/shm; echo 0 >/proc/sys/user/max_user_namespaces; "$@"', "sh")
    report = own.doctor()
    assert not may(own, "unshare", "-Um", "true") and not report["environment"]["user_namespaces"]
    assert report["environment"]["can_remount"]
    fixes = [fix for fix in report["by_id"]["shm-too-small"]["fixes"] if fix["command"]]
    remount = next(fix["command"] for fix in fixes if fix["needs"] == "root")
    size = own.run("sh", "-ec", remount + "; df --output=size -B1 /dev/shm | tail -n 1")
    assert int(size.stdout) >= GIB, size
    assert all(fix["needs"] == "admin" for fix in fixes if "fstab" in fix["command"])


@needs_root
def test_advice_for_a_user_without_rights(small_shm, ordinary):
    """Nothing that takes a right comes before what the user can do, and root's commands go through sudo, if at all."""
    alone = small_shm.alone()
    finding = ordinary(alone).doctor()["by_id"]["shm-too-small"]
    assert finding["fixes"][0]["needs"] == "nothing"
    for fix in finding["fixes"]:
        if fix["command"] and "mount" in fix["command"]:
            assert fix["needs"] != "nothing" and "sudo " in fix["command"]

    # With no_new_privs, sudo cannot work.
    confined = ordinary(alone.within("setpriv", "--no-new-privs")).doctor()["by_id"]["shm-too-small"]
    assert {fix["needs"] for fix in confined["fixes"]} <= {"nothing", "admin", "restart"}


def test_only_some_findings(here):
    """What else is wrong counts neither for the findings nor for the exit code."""
    root = ("--root", ROOTS / "docker")
    everything = here.doctor(*root)
    assert {"shm-too-small", "workers-exceed-cpus"} <= set(everything["by_id"]), everything["by_id"]
    only = here.doctor(*root, "--only", "workers-exceed-cpus", "--only", "swap-low")
    assert set(only["by_id"]) == {"workers-exceed-cpus", "swap-low"} & set(everything["by_id"])
    assert only["by_id"]["workers-exceed-cpus"] == everything["by_id"]["workers-exceed-cpus"]
    assert here.shmguard("doctor", *root, "--only", "shm-too-small").returncode == 2
    none = here.json("doctor", *root, "--only", "remove-ipc", codes=(0,))
    assert none["findings"] == [] and none["verdict"] == "ok" and all(line.startswith("remove-ipc:") for line in none["skipped"])
