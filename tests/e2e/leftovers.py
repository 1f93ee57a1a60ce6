# SPDX-License-Identifier: Apache-2.0
"""Shared memory without an owner: created files and what killed trainings leave behind, each kind in its own mount."""

import contextlib
import os
import signal
import subprocess
import time

from conftest import MIB, PYTHONS, as_user, children, end_tree, has_ended, mount_namespace, scratch_directory, wait_until

# User ids that only these tests use: the manager of someone else's training must not affect them.
ALICE, BOB, CAROL, DAVE = 64001, 64002, 64003, 64004
SERVER = 1000  # of deploy/kubernetes/server

KNOWN = {  # name: bytes
    "torch_4242_3312048626_0": MIB, "torch_4242_7": 4096, "nccl-AbCdEf": 2 * MIB, "psm_1a2b3c4d": 100, "pym-77-ab_c12xy": 4096,
    "sem.mp-1xxmdphe": 32, "shm_allreduce_buffer_0": 4096, "nvidia_dali_7": 4096, "plasmaXYZ123": 4096,
    "vader_segment.node.1000.1": 4096, "nvidia_dali_\n\x1b[31mred": 4096, "psm_e3b70001": 0,
}
SERVERS = {  # what crashed inference servers leave: name → bytes; of each, its maker keeps it open while it is used
    "vllm_offload_5e0c7a52-41c1-4a41-9d0b-6c1f5e0f7a11.mmap": MIB, "vllm_ec_5e0c7a52.mmap": 4096,
    "VLLM_OBJECT_STORAGE_SHM_BUFFER_0f0e0d0c0b0a09080706050403020100": 4096, "sgl_shm_mq_7_0a1b2c3d": 4096,
    "sglang_loads_ipc_0a1b2c3d.shm": 4096, "lmcache_l1_pool_7": 4096, "triton_python_backend_shm_region_1": 4096,
}
WAITING = {"sgl_shm_mm_7_0a1b2c3d": MIB, "sglmm-7-1-0": 4096, "psm_1ef70001": 4096}  # may wait to be opened by name
IN_USE = {f"vllm_offload_{how}.mmap": 4096 for how in ("open", "mapped", "readonly", "locked", "private")}
OTHER = {
    "dataset.bin": MIB, "torch_cache": 4096, "my_torch_1_2": 4096, "torch_12": 4096, "000000_locals": 4096, "psm": 4096,
    "torch_2024_dataset.pt": 4096, "nccl-notes.txt": 4096, "psm_report.csv": 4096, "plasma_simulation.npy": 4096,
    "run/torch_1_2_3": 4096, "nccl-tests/input.bin": 4096, "plasma-study/day/1/frames": 4096, "sem.d/notes": 4096,
}


def make(machine, files, uid=ALICE):
    for name, size in files.items():
        path = machine.shm / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
        os.chown(path, uid, uid)


class Leftovers:
    """Machines, named after what is in their /dev/shm. `old()` waits until all of it is a minute old."""

    def __init__(self, public):
        self.public = public
        self.stack = contextlib.ExitStack()
        self.stopped = {}  # stopped managers: name of the machine → pids
        self.outside = None  # the target of a link in "many"

    def __enter__(self):
        with self.stack:  # undone unless everything succeeds
            self.make_all()
            self.stack = self.stack.pop_all()
        self.made = time.time()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def old(self):
        time.sleep(max(0, self.made + 61 - time.time()))

    def machine(self):
        return self.stack.enter_context(mount_namespace("size=256m"))

    def make_all(self):
        # The jobs start first, all at once, because they take a while.
        self.jobs = {}
        for version, python in PYTHONS.items():
            if os.access(python, os.X_OK):
                self.jobs[version] = self.start_job(python, CAROL)
        self.jobs["manager"] = self.start_job(PYTHONS["system"], DAVE)
        self.make_many()
        self.make_users()
        for name in ["pidns", "readonly", "hidden", "flight"]:
            machine = self.machine()
            make(machine, {"psm_1ef70001": 4096})
            setattr(self, name, machine)
        self.pods = self.machine()
        make(self.pods, {**SERVERS, **WAITING, **IN_USE, "vllm_notes.mmap": 4096})
        self.node = self.machine()
        make(self.node, {**SERVERS, **WAITING, "vllm_notes.mmap": 4096}, uid=SERVER)
        self.sender = self.start_sender()
        self.race = self.machine()
        make(self.race, {f"psm_{i:08x}": 4096 for i in range(400)})
        for version, (machine, job) in self.jobs.items():
            self.kill_job(version, machine, job)
        make(self.many, {"torch_777_888_0": 4096}, uid=DAVE)

    def start_sender(self):
        """A process in a pid namespace of its own that has made a file for another one to open by its name, as SGLang does."""
        machine = self.machine()
        program = "import os, time; open(f'/dev/shm/sgl_shm_mm_{os.getpid()}_0a1b2c3d', 'wb').close(); print(flush=True); time.sleep(3600)"
        job = machine.alone().popen(PYTHONS["system"], "-c", program, stdout=subprocess.PIPE, start_new_session=True)
        self.stack.callback(end_tree, job)
        job.stdout.readline()
        return machine, job

    def start_job(self, python, uid):
        machine = self.machine()
        scratch = self.stack.enter_context(scratch_directory())
        job = machine.within(*as_user(uid)).popen(
            python, self.public / "train.py", "--batch=4", "--side=256", "--hold=3600", "--strategy=file_system",
            stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, "TMPDIR": scratch})
        self.stack.callback(end_tree, job)
        return machine, job

    def kill_job(self, version, machine, job):
        """Kills all processes with SIGKILL at once. The manager would clean up after them, so it is stopped or killed too."""
        assert job.stdout.readline() == b"holding\n"
        wait_until(lambda: machine.shm_used >= 6 * 4 * 3 * 256 * 256, "the workers fill their queues")
        pids = [job.pid, *children(job.pid)]
        managers = [pid for pid in pids if open(f"/proc/{pid}/comm").read().startswith("torch_shm_manag")]
        assert managers
        for pid in managers:
            os.kill(pid, signal.SIGSTOP)
            self.stack.callback(self.kill, pid)
        for pid in pids:
            if pid not in managers:
                os.kill(pid, signal.SIGKILL)
        job.wait()
        self.stopped[version] = managers
        if version != "manager":
            self.kill_managers(version)
        assert [name for name in os.listdir(machine.shm) if name.startswith("torch_")]

    def kill_managers(self, version):
        for pid in self.stopped[version]:
            self.kill(pid)
        wait_until(lambda: all(map(has_ended, self.stopped[version])), "killed managers end")
        self.stopped[version] = []

    @staticmethod
    def kill(pid):
        """Kills the process only if it is still a manager: its pid may have been reused."""
        with contextlib.suppress(OSError):
            if open(f"/proc/{pid}/comm").read().startswith("torch_shm_manag"):
                os.kill(pid, signal.SIGKILL)

    def make_many(self):
        self.many = self.machine()
        make(self.many, KNOWN)
        make(self.many, OTHER)
        make(self.many, {"psm_be1d0001": 4096, "psm_3a99ed01": 4096, "psm_70c4ed01": 4096, "psm_114ced01": 4096})
        with open(self.many.shm / "psm_59a25e01", "wb") as sparse:
            sparse.truncate(8 * MIB)
            sparse.write(b"x")
        os.link(self.many.shm / "psm_114ced01", self.many.shm / "keepsake")
        self.outside = self.public / "precious"
        self.outside.write_text("not shared memory\n")
        os.symlink(self.outside, self.many.shm / "torch_9_9_9")
        os.symlink("dataset.bin", self.many.shm / "psm_114c0001")
        os.mkfifo(self.many.shm / "psm_f1f00001")
        os.mkdir(self.many.shm / "psm_d12ec701")

    def make_users(self):
        self.users = self.machine()
        make(self.users, {"psm_a11ce001": MIB, "psm_a11cebe1": 4096}, uid=ALICE)
        make(self.users, {"psm_b0b00001": 4096, "psm_b0b5ec2e": 4096}, uid=BOB)
        make(self.users, {"psm_20070001": 4096}, uid=0)
        os.chmod(self.users.shm / "psm_b0b5ec2e", 0o600)
