# SPDX-License-Identifier: Apache-2.0
"""Who holds which shared memory: the real program against real PyTorch, compared with what the kernel says by itself."""

import os
import subprocess
import time

import pytest

from conftest import MIB, PYTHONS, TRAIN, cells, children, end_tree, free_port, holder, needs_root, python_of, skip_without_torchrun

BATCH_BYTES = 16 * 3 * 256 * 256  # what training() makes unless told otherwise
IN_FLIGHT = 2 * 2 + 2             # two for each worker, and the two that the trainer keeps


def holders_by_hand(pids, device, inode):
    """The processes that have the file open or mapped, by a second way: Python and the text of maps."""
    found = set()
    major, minor = map(int, device.split(":"))
    key = f"{major:02x}:{minor:02x} {inode} "
    for pid in pids:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                stat = os.stat(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if stat.st_ino == inode and stat.st_dev == os.makedev(major, minor):
                found.add(pid)
        with open(f"/proc/{pid}/maps", errors="replace") as maps:
            if any(key in line for line in maps):
                found.add(pid)
    return found


@needs_root
@cells("version, method, strategy",
       [("system", "fork", "file_descriptor"), ("2.13", "fork", "file_system"), ("system", "spawn", "file_system"),
        ("2.13", "spawn", "file_descriptor"), ("system", "forkserver", "file_descriptor"), ("2.13", "forkserver", "file_system")],
       PYTHONS, ("fork", "spawn", "forkserver"), ("file_descriptor", "file_system"), slow=lambda _, method, __: method != "fork")
def test_roles_holders_and_attribution(private_shm, version, method, strategy):
    with private_shm.training(python_of(version), "--start-method", method, "--strategy", strategy) as trainer:
        tree = [trainer, *children(trainer)]
        report = private_shm.json("ps")
        processes = {process["pid"]: process for process in report["processes"]}
        roles = {pid: processes[pid]["role"] for pid in tree if pid in processes}

        assert [pid for pid, role in roles.items() if role == "trainer"] == [trainer]
        workers = [pid for pid, role in roles.items() if role == "worker"]
        assert len(workers) == 2
        for worker in workers:
            assert processes[worker]["start_method"] == method
            assert processes[worker]["job"] == trainer
        assert ("manager" in roles.values()) == (strategy == "file_system")
        assert all(processes[pid]["job"] == trainer for pid, role in roles.items() if role == "manager")

        # Other trainings may run on this machine, in a /dev/shm that is not ours.
        device = os.stat(private_shm.shm).st_dev
        ours = [s for s in report["segments"] if s["device"] == f"{os.major(device)}:{os.minor(device)}"]
        torch = [segment for segment in ours if segment["kind"] == "torch"]
        images = [segment for segment in torch if segment["size"] >= BATCH_BYTES]
        assert len(images) == IN_FLIGHT
        assert all(segment["backing"] == "shm" and segment["orphan"] == "no" for segment in images)
        assert all(segment["allocated"] >= BATCH_BYTES for segment in images)
        assert all(segment["deleted"] == (strategy == "file_descriptor") for segment in torch)
        for segment in ours:
            assert set(segment["holders"]) == holders_by_hand(tree, segment["device"], segment["inode"])
        assert sum(trainer in segment["holders"] for segment in images) >= 2

        used = report["shm"]["used"]
        assert used == private_shm.shm_used >= IN_FLIGHT * BATCH_BYTES
        # Under file_system a tensor that waits in the queue is a file which nobody has open.
        waiting = sum(segment["allocated"] for segment in ours if not segment["holders"])
        assert (waiting > 0) == (strategy == "file_system")
        assert report["attributed"] + waiting == pytest.approx(used, rel=0.01)
        assert report["unattributed"] == used - report["attributed"]
        held = sum(segment["allocated"] for segment in report["segments"] if trainer in segment["holders"])
        assert processes[trainer]["shm"] == held >= 2 * BATCH_BYTES
        for pid in [trainer, *workers]:
            assert 0 < processes[pid]["uss"] <= processes[pid]["pss"] <= processes[pid]["rss"]
            assert processes[pid]["fds"] == len(os.listdir(f"/proc/{pid}/fd"))


@needs_root
@pytest.mark.slow
def test_ranks_of_torchrun_are_trainers(private_shm, python, tmp_path):
    skip_without_torchrun(python)
    # 1.13's launcher fails under Python 3.11 unless it is told where the ranks' errors go.
    launcher = private_shm.popen(
        python, "-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={free_port()}", "--redirects=2",
        "--tee=2", f"--log_dir={tmp_path}", TRAIN, "--batch=16", "--side=256", "--hold=300",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        # Both ranks write to one pipe, the word and its newline apart where the launcher has told Python not to buffer.
        said = b""
        while said.count(b"holding") < 2:
            piece = launcher.stdout.read1(64)
            assert piece, said
            said += piece
        report = private_shm.json("ps", "--all")
        processes = {process["pid"]: process for process in report["processes"]}
        trainers = [pid for pid in children(launcher.pid) if pid in processes and processes[pid]["role"] == "trainer"]
        assert len(trainers) == 2
        assert processes[launcher.pid]["role"] == "other"
        for trainer in trainers:
            workers = [p for p in report["processes"] if p["role"] == "worker" and p["job"] == trainer]
            assert len(workers) == 2
            assert {worker["pid"] for worker in workers} <= set(children(trainer))
    finally:
        end_tree(launcher)


FEED = """
import multiprocessing, sys, time
import torch

def produce(queue, number):  # as batchgenerators' workers do
    while True:
        queue.put((number, torch.rand(2, 3, 32, 32)))

multiprocessing.set_start_method("fork")
queue = multiprocessing.Queue(4)
workers = [multiprocessing.Process(target=produce, args=(queue, number), daemon=True) for number in range(3)]
for worker in workers:
    worker.start()
model = torch.nn.Conv2d(3, 4, 3)
seen = set()
while len(seen) < 3:
    number, batch = queue.get()
    seen.add(number)
    model(batch).sum().backward()
print("ready", flush=True)
sys.stdin.read()
"""

FORKED_RANKS = """
import os, sys
import torch, torch.distributed, torch.multiprocessing

def rank(number):
    torch.distributed.init_process_group("gloo", rank=number, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.rand(2, 4)).sum().backward()
    ready.release()
    sys.stdin = os.fdopen(0)
    sys.stdin.read()

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
torch.multiprocessing.set_start_method("fork")
ready = torch.multiprocessing.Semaphore(0)
ranks = [torch.multiprocessing.Process(target=rank, args=(number,)) for number in range(2)]
for one in ranks:
    one.start()
for _ in ranks:
    ready.acquire()
print("ready", flush=True)
for one in ranks:
    one.join()
"""


def roles_below(machine, pid):
    """Of the processes below pid that have a role."""
    return [process["role"] for process in machine.json("ps")["processes"]
            if process["pid"] in children(pid) and process["role"] != "other"]


def test_who_feeds_a_queue_is_a_worker(here, python):
    job = here.popen(python, "-W", "ignore", "-c", FEED, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        assert roles_below(here, job.pid) == ["worker"] * 3
    finally:
        end_tree(job)


def test_ranks_that_were_forked_are_trainers(here):
    """PyTorch names their threads; before 2.6 it did not, and they look like workers."""
    job = here.popen(python_of("2.13"), "-W", "ignore", "-c", FORKED_RANKS, free_port(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        assert roles_below(here, job.pid) == ["trainer"] * 2
    finally:
        end_tree(job)


THREADS = """
import sys, threading
import torch

def work():  # as PyTorch's own loop does, after 2.13
    torch.multiprocessing._set_thread_name("pt_thread_data_worker")
    started.release()
    sys.stdin.read()

started = threading.Semaphore(0)
for _ in range(3):
    threading.Thread(target=work).start()
for _ in range(3):
    started.acquire()
print("ready", flush=True)
"""


@pytest.mark.timed
def test_workers_that_are_threads(here):
    job = here.popen(python_of("2.13"), "-c", THREADS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        process, = [process for process in here.json("ps")["processes"] if process["pid"] == job.pid]
        assert (process["role"], process["loader_threads"]) == ("trainer", 3)
        assert b"has 3 DataLoader workers that are threads" in b" ".join(here.shmguard("ps").stdout.split())
        assert "nothing to guard" in here.doctor("--pid", str(job.pid))["by_id"]["workers-are-threads"]["evidence"]
    finally:
        end_tree(job)

    job = here.popen(here.program, "run", "--", python_of("2.13"), "-c", THREADS, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)
    assert job.stdout.readline() == b"ready\n"
    time.sleep(3)  # for the supervisor to look at it
    said = b" ".join(job.communicate()[1].split())
    assert job.returncode == 0 and b"workers were threads of the training process" in said, said


@needs_root
def test_one_job_of_two(private_shm, here):
    with private_shm.training("/usr/bin/python3") as one, private_shm.training("/usr/bin/python3", settle=False) as two:
        report = private_shm.json("ps", "--pid", one)
        pids = {process["pid"] for process in report["processes"]}
        assert pids == {one, *children(one)} and two not in pids
        worker = next(p["pid"] for p in report["processes"] if p["role"] == "worker")
        assert {p["pid"] for p in private_shm.json("ps", "--pid", worker)["processes"]} == pids
        assert report["segments"] and all(pids & set(segment["holders"]) for segment in report["segments"])

        # From outside, the segments of a container are listed with their holders, and do not count in our mount.
        outside = here.json("ps", "--pid", one)
        images = [s for s in outside["segments"] if s["kind"] == "torch" and s["size"] >= BATCH_BYTES]
        assert len(images) == IN_FLIGHT and all(pids & set(s["holders"]) for s in images)
        assert outside["shm"]["size"] != report["shm"]["size"]
        assert outside["attributed"] <= outside["shm"]["used"]


MAPPED_ONLY = """
import mmap, os, sys
name = "/dev/shm/nccl-AbCdEf"
fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 8 << 20)
mapped = mmap.mmap(fd, 8 << 20)
os.unlink(name)
mapped[: 4 << 20] = b"x" * (4 << 20)
# mmap keeps a duplicate of the descriptor: close it by number.
for number in map(int, os.listdir("/proc/self/fd")):
    if number > 2 and os.path.realpath(f"/proc/self/fd/{number}").startswith("/dev/shm"):
        os.close(number)
"""


@needs_root
def test_memfd_and_mapping_without_descriptor(private_shm):
    """Held by a mapping alone, unlinked and closed, as NCCL does it; and a memfd."""
    program = MAPPED_ONLY + """
memfd = os.memfd_create("pool")
os.ftruncate(memfd, 1 << 20); os.pwrite(memfd, b"y" * 4096, 0)
"""
    with holder(private_shm, program) as pid:
        report = private_shm.json("ps")
        nccl = next(s for s in report["segments"] if s["kind"] == "nccl" and s["holders"] == [pid])
        assert nccl["deleted"] and nccl["allocated_source"] == "measured"
        assert (nccl["size"], nccl["allocated"]) == (8 * MIB, 4 * MIB)
        memfd = next(s for s in report["segments"] if s["backing"] == "memfd" and pid in s["holders"])
        assert memfd["name"] == "pool" and memfd["allocated"] == 4096 and not memfd["deleted"]
        assert report["memfd"] >= 4096
        assert report["attributed"] == 4 * MIB and report["unattributed"] == 0  # a memfd is not of the mount


@needs_root
def test_what_nobody_visible_holds_is_unattributed(private_shm):
    (private_shm.shm / "left behind\n(x)").write_bytes(bytes(3 * MIB))
    report = private_shm.json("ps")
    assert report["unattributed"] == report["shm"]["used"] == 3 * MIB and report["attributed"] == 0
    segment = next(s for s in report["segments"] if s["name"].startswith("left behind"))
    assert segment["name"] == "left behind\\n(x)" and segment["kind"] == "other" and segment["holders"] == []
    assert segment["orphan"] == "no"  # it has only just been made


@needs_root
def test_a_semaphore_has_a_name_although_its_mapping_says_deleted(private_shm):
    program = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.sem_open.restype = ctypes.c_void_p
assert libc.sem_open(b"/turnstile", 0o100, 0o600, 1)
"""
    with holder(private_shm, program) as pid:
        semaphore = next(s for s in private_shm.json("ps")["segments"] if s["holders"] == [pid])
        assert (semaphore["name"], semaphore["kind"], semaphore["deleted"]) == ("sem.turnstile", "semaphore", False)


@needs_root
def test_segments_are_sorted(private_shm):
    for name, pages in {"psm_b": 3, "psm_a": 1, "psm_c": 2}.items():
        (private_shm.shm / name).write_bytes(bytes(4096 * pages))

    def order(key):
        return [s["name"] for s in private_shm.json("ps", "--sort", key)["segments"] if s["name"].startswith("psm_")]

    assert order("name") == ["psm_a", "psm_b", "psm_c"]
    assert order("size") == order("allocated") == ["psm_b", "psm_c", "psm_a"]
    pids = [p["pid"] for p in private_shm.json("ps", "--all", "--sort", "pid")["processes"]]
    assert pids == sorted(pids) and private_shm.pid in pids
    fds = [p["fds"] for p in private_shm.json("ps", "--all", "--sort", "fds")["processes"] if p["fds"] is not None]
    assert fds == sorted(fds, reverse=True) and fds[0] > 0
