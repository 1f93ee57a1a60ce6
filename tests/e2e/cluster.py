# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of two nodes on this machine: Debian's (scripts/slurm unpacks it, or it is installed) in namespaces of its own, with its own
control groups where version 1 of them is mounted. Nothing of it is left afterwards."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import uuid

import pytest

from conftest import BUILD, PROJECT, Machine, as_user, mounts_are_allowed, wait_until

TRAINER = 4242  # uid of the user who submits jobs
UNPACKED = PROJECT / ".slurm"
PLUGIN = BUILD / "src" / "slurm" / "shmguard-spank.so"
DEPLOY = PROJECT / "deploy" / "slurm"
CONTROLLERS = ("memory", "freezer", "cpuset", "cpuacct", "devices")  # of version 1, that Slurm may use

# Process 1. A name is resolved only if there is an address other than 127.0.0.1.
BOOT = r"""
set -eu
dir=$1
shift
if [ -z "${SHMGUARD_BOOT:-}" ]; then
    for group; do echo $$ >"$group/cgroup.procs"; done
    SHMGUARD_BOOT=1 exec unshare --cgroup bash "$0" "$dir" "$@"
fi
for group; do
    top=${group%/*}
    umount "$top"
    mount -t cgroup -o "${top##*/}" cgroup "$top"
done
hostname node
ip link set lo up
ip addr add 10.0.0.1/8 dev lo
mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm
mount -t tmpfs tmpfs /mnt
[ ! -d "$dir/usr" ] || mount -t overlay -o "lowerdir=/usr:$dir/usr" overlay /usr
for name in passwd group hosts; do mount --bind "$dir/etc/$name" "/etc/$name"; done
munged --force --key-file="$dir/key" --socket="$dir/munge" --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/seed"
export SLURM_CONF=$dir/slurm.conf
slurmctld -D >"$dir/slurmctld.out" 2>&1 &
slurmd -D -N n1 >"$dir/slurmd-n1.out" 2>&1 &
slurmd -D -N n2 >"$dir/slurmd-n2.out" 2>&1 &
wait # and reaps orphans
"""

# Nodes are oversubscribed: two jobs may have the same CPUs.
SLURM_CONF = """
ClusterName=shmguard
SlurmctldHost=node(10.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdLogFile={dir}/slurmd-%n.log
SlurmdPidFile={dir}/slurmd-%n.pid
ProctrackType={proctrack}
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0,bf_interval=1
ReturnToService=2
KillWait=2
CompleteWait=0
MpiDefault=none
SwitchType=switch/none
TaskProlog={dir}/task-prolog
Epilog={dir}/epilog
NodeName=n1 NodeHostname=node NodeAddr=10.0.0.1 Port=17001 CPUs=8 RealMemory=8192
NodeName=n2 NodeHostname=node NodeAddr=10.0.0.1 Port=17002 CPUs=8 RealMemory=8192
PartitionName=all Nodes=ALL Default=YES MaxTime=60 DefMemPerCPU=1024 OverSubscribe=FORCE:2
{more}
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainRAMSpace=yes\n"


def needs_slurm():
    found = UNPACKED.is_dir() or shutil.which("slurmctld")
    why = None if found else "no Slurm: scripts/slurm unpacks Debian's"
    why = why or (None if mounts_are_allowed() else "needs root and the right to mount")
    if why and os.environ.get("SHMGUARD_REQUIRE_SLURM"):
        pytest.fail(f"Slurm is required here: {why}")
    if why:
        pytest.skip(why)


def groups_make():
    """Groups of version 1 of our own, in which Slurm can make its groups. Empty where there are none."""
    name = f"shmguard-e2e-{uuid.uuid4().hex[:8]}"
    made = []
    try:
        for controller in CONTROLLERS:
            top = pathlib.Path("/sys/fs/cgroup") / controller
            group = top / name
            group.mkdir()
            made.append(group)
            if controller == "cpuset":
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (group / file).write_text((top / file).read_text())
    except OSError:
        groups_remove(made)
        return []
    return made


def groups_remove(groups):
    for group in groups:
        for directory in sorted((path for path, _, _ in os.walk(group)), key=len, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


class Cluster:
    """Commands run as the user who trains, or as root, in the directory `work`, which is the user's."""

    def __init__(self, directory, public, groups, more):
        self.directory = directory
        shutil.copytree(public, directory / "public")
        self.program = directory / "public" / "shmguard"
        self.train = directory / "public" / "train.py"
        self.constrained = bool(groups)
        self.work = directory / "work"
        self.write(more)
        self.process = None
        self.groups = groups

    def start(self):
        directory, groups = self.directory, self.groups
        boot = directory / "boot"
        executable(boot, BOOT)
        self.process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--propagation", "private", "--mount-proc", "--ipc", "--net", "--uts",
             "bash", boot, directory, *groups], stdin=subprocess.DEVNULL, stdout=(directory / "boot.out").open("wb"), stderr=subprocess.STDOUT)
        wait_until(self.find_init, "process 1 of the cluster")
        enter = ["nsenter", "-t", str(self.init), "-m", "-p", "-n", "-i", "-u", *(["-C"] if groups else []), f"--wd={self.work}",
                 "env", "-u", "LD_LIBRARY_PATH", "-u", "SHMGUARD", f"SLURM_CONF={directory}/slurm.conf"]
        self.root = Machine(enter, self.init, str(self.program))
        self.user = Machine([*enter, *as_user(TRAINER)], self.init, str(self.program))
        try:
            wait_until(self.is_up, "the nodes are up")
        except AssertionError as error:
            raise AssertionError(self.log()) from error

    def find_init(self):
        assert self.process.poll() is None, (self.directory / "boot.out").read_text()
        found = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.init = int(found[0]) if found else 0
        return self.init and (self.directory / "munge").exists()  # the last thing before Slurm

    def write(self, more):
        directory = self.directory
        self.work.mkdir()
        os.chown(self.work, TRAINER, TRAINER)
        (directory / "state").mkdir()
        (directory / "etc").mkdir()
        for name, line in {"passwd": f"trainer:x:{TRAINER}:{TRAINER}::{self.work}:/bin/sh", "group": f"trainer:x:{TRAINER}:",
                           "hosts": "10.0.0.1 node"}.items():
            (directory / "etc" / name).write_text(pathlib.Path("/etc", name).read_text() + line + "\n")
        if UNPACKED.is_dir():
            shutil.copytree(UNPACKED / "usr", directory / "usr", symlinks=True, copy_function=os.link if same_device(directory) else shutil.copy2)
        (directory / "key").write_bytes(os.urandom(1024))
        (directory / "key").chmod(0o400)
        # In a pid namespace, the program cannot know by itself that no process elsewhere uses this /dev/shm.
        executable(directory / "clean", f'#!/bin/sh\nexec "{self.program}" "$@" --private\n')
        executable(directory / "task-prolog", script("task-prolog", self.program.parent))
        executable(directory / "epilog", script("epilog", self.program.parent).replace(f"program={self.program}", f"program={directory}/clean"))
        (directory / "cgroup.conf").write_text(CGROUP_CONF)
        (directory / "job_container.conf").write_text(f"AutoBasePath=true\nBasePath=/mnt/containers\n")
        if PLUGIN.exists():
            shutil.copy(PLUGIN, directory)
            self.plugin(self.program)
        (directory / "slurm.conf").write_text(SLURM_CONF.format(
            dir=directory, more=more.format(dir=directory),
            proctrack="proctrack/cgroup" if self.constrained else "proctrack/linuxproc",
            task="task/cgroup" if self.constrained else "task/none"))

    def plugin(self, program):
        (self.directory / "plugstack.conf").write_text(f"optional {self.directory / PLUGIN.name} program={program}\n")

    def is_up(self):
        assert self.process.poll() is None, (self.directory / "boot.out").read_text()
        states = self.root.run("sinfo", "-h", "-N", "-o", "%T", timeout=60)
        return states.stdout.split() == [b"idle", b"idle"]

    def log(self):
        return [path.read_text()[-2000:] for path in self.directory.glob("*.out")]

    def srun(self, *arguments, **kwargs):
        return self.user.run("srun", *arguments, timeout=120, **kwargs)

    def submit(self, script, *options):
        """Submits a batch script. Returns the job's id."""
        done = self.user.run("sbatch", "--parsable", *options, input=f"#!/bin/sh\n{script}\n".encode())
        assert done.returncode == 0, done
        return int(done.stdout)

    def job(self, number):
        """What Slurm knows of a job: name → value. Of an array, the last of its jobs."""
        shown = self.root.run("scontrol", "show", "job", number).stdout.decode()
        return dict(re.findall(r"^\s*(\w+)=(.*)$", re.sub(r" (\w+)=", r"\n\1=", shown), re.M))

    def wait(self, number, wanted="COMPLETED"):
        """Waits until a job has ended, as it should."""
        wait_until(lambda: self.job(number)["JobState"] not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"), f"job {number} ends")
        assert self.job(number)["JobState"] == wanted, (self.job(number)["JobState"], [path.read_text() for path in self.work.glob("*.out")])

    def processes(self):
        """Command lines of the processes of the user, those of a shell of ours aside."""
        return self.root.run("ps", "-u", str(TRAINER), "-o", "args=").stdout.decode().splitlines()

    def left(self):
        """What jobs have left behind: processes, shared memory, sockets, control groups."""
        sockets = re.findall(r"@shmguard\S*", self.root.run("cat", "/proc/net/unix").stdout.decode())
        steps = self.root.run("find", "/sys/fs/cgroup/memory", "-name", "job_*").stdout.decode().split() if self.constrained else []
        return [*self.processes(), *os.listdir(self.root.shm), *sockets, *steps]

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def same_device(directory):
    return os.stat(directory).st_dev == os.stat(UNPACKED).st_dev


def script(name, directory):
    """As it is installed, but for the paths."""
    text = (DEPLOY / f"{name}.in").read_text()
    return text.replace("@program@", str(directory / "shmguard")).replace("@library@", str(directory / "libshmguard-preload.so"))


@contextlib.contextmanager
def cluster(public, more=""):
    needs_slurm()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="shmguard-slurm-", dir="/var/tmp"))  # job_container/tmpfs hides /tmp
    groups = groups_make()
    directory.chmod(0o755)
    made = Cluster(directory, public, groups, more)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        wait_until(lambda: not any((group / "cgroup.procs").read_text() for group in groups), "the cluster ends")
        groups_remove(groups)
        shutil.rmtree(directory, ignore_errors=True)

