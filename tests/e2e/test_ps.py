"""Who holds which shared memory: the real program against real PyTorch, compared with what the kernel says by itself."""

import os
import subprocess
import sys

import pytest

from conftest import TRAIN, children, needs_root

BATCH = ("--batch", "16", "--side", "256")  # 3 MiB
BATCH_BYTES = 16 * 3 * 256 * 256


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
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_roles_holders_and_attribution(private_shm, python, method, strategy):
    with private_shm.training(python, *BATCH, "--start-method", method, "--strategy", strategy) as trainer:
        tree = [trainer, *children(trainer)]
        report = private_shm.json("ps")
        processes = {process["pid"]: process for process in report["processes"]}

        assert processes[trainer]["role"] == "trainer"
        workers = [pid for pid in tree if processes.get(pid, {}).get("role") == "worker"]
        assert len(workers) == 2
        for worker in workers:
            assert processes[worker]["start_method"] == method
            assert processes[worker]["job"] == trainer
        managers = [pid for pid in tree if processes.get(pid, {}).get("role") == "manager"]
        assert bool(managers) == (strategy == "file_system")
        assert all(process["role"] != "trainer" for pid, process in processes.items() if pid != trainer)

        torch = [segment for segment in report["segments"] if segment["kind"] == "torch"]
        images = [segment for segment in torch if segment["size"] >= BATCH_BYTES]
        assert len(images) >= 4
        assert all(segment["backing"] == "shm" and segment["orphan"] == "no" for segment in images)
        assert all(segment["deleted"] == (strategy == "file_descriptor") for segment in torch)
        for segment in torch:
            assert set(segment["holders"]) == holders_by_hand(tree, segment["device"], segment["inode"])

        used = report["shm"]["used"]
        assert used >= 4 * BATCH_BYTES
        assert report["attributed"] == pytest.approx(used, rel=0.01)
        assert report["attributed"] + report["unattributed"] == pytest.approx(used, rel=0.01)
        assert processes[trainer]["shm"] >= 2 * BATCH_BYTES
        for pid in [trainer, *workers]:
            assert 0 < processes[pid]["uss"] <= processes[pid]["pss"] <= processes[pid]["rss"]


@needs_root
def test_ranks_of_torchrun_are_trainers(private_shm, python):
    launcher = private_shm.popen(
        python, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29517", TRAIN, *BATCH, "--hold", "300",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert launcher.stdout.readline() == b"holding\n"
        assert launcher.stdout.readline() == b"holding\n"
        report = private_shm.json("ps", "--all")
        processes = {process["pid"]: process for process in report["processes"]}
        trainers = [pid for pid in children(launcher.pid) if processes[pid]["role"] == "trainer"]
        assert len(trainers) == 2
        assert processes[launcher.pid]["role"] == "other"
        for trainer in trainers:
            workers = [p for p in report["processes"] if p["role"] == "worker" and p["job"] == trainer]
            assert len(workers) == 2
    finally:
        from conftest import end_tree
        end_tree(launcher)


@needs_root
def test_one_job_of_two(private_shm):
    with private_shm.training("/usr/bin/python3", *BATCH) as one, \
            private_shm.training("/usr/bin/python3", *BATCH) as two:
        report = private_shm.json("ps", "--pid", one)
        pids = {process["pid"] for process in report["processes"]}
        assert one in pids and two not in pids
        worker = next(p["pid"] for p in report["processes"] if p["role"] == "worker")
        assert {p["pid"] for p in private_shm.json("ps", "--pid", worker)["processes"]} == pids
        assert all(pids & set(segment["holders"]) for segment in report["segments"])


@needs_root
def test_memfd_and_mapping_without_descriptor(private_shm):
    """Held by a mapping alone, unlinked and closed, as NCCL does it; and a memfd."""
    program = """
import mmap, os, sys
fd = os.open("/dev/shm/nccl-AbCdEf", os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 8 << 20)
mapped = mmap.mmap(fd, 8 << 20)
os.close(fd); os.unlink("/dev/shm/nccl-AbCdEf")
mapped[: 4 << 20] = b"x" * (4 << 20)
memfd = os.memfd_create("pool")
os.ftruncate(memfd, 1 << 20); os.pwrite(memfd, b"y" * 4096, 0)
print("ready", flush=True); sys.stdin.read()
"""
    # mmap keeps a duplicate of the descriptor unless told otherwise: close it by number.
    program = program.replace("os.close(fd);", "[os.close(int(n)) for n in os.listdir('/proc/self/fd') if int(n) > 2 and "
                                               "os.path.realpath('/proc/self/fd/' + n).startswith('/dev/shm')];")
    job = private_shm.popen(sys.executable, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        report = private_shm.json("ps")
        nccl = next(s for s in report["segments"] if s["kind"] == "nccl")
        assert nccl["deleted"] and nccl["holders"] == [job.pid]
        assert (nccl["size"], nccl["allocated"]) == (8 << 20, 4 << 20)
        memfd = next(s for s in report["segments"] if s["backing"] == "memfd" and job.pid in s["holders"])
        assert memfd["name"] == "pool" and memfd["allocated"] == 4096 and not memfd["deleted"]
        assert report["memfd"] >= 4096
    finally:
        job.communicate()


@needs_root
def test_what_nobody_visible_holds_is_unattributed(private_shm):
    private_shm.run("dd", "if=/dev/zero", "of=/dev/shm/left behind\n(x)", "bs=1M", "count=3")
    report = private_shm.json("ps")
    assert report["unattributed"] == report["shm"]["used"] - report["attributed"] >= 3 << 20
    segment = next(s for s in report["segments"] if s["name"].startswith("left behind"))
    assert segment["name"] == "left behind\\n(x)" and segment["kind"] == "other" and segment["holders"] == []


@needs_root
def test_another_namespace_has_a_dev_shm_of_its_own(here, private_shm):
    """Seen from outside: the segments of a container are listed with their holders, and do not count in our mount."""
    with private_shm.training("/usr/bin/python3", *BATCH) as trainer:
        report = here.json("ps", "--pid", trainer)
        images = [s for s in report["segments"] if s["kind"] == "torch" and s["size"] >= BATCH_BYTES]
        assert len(images) >= 4 and all(trainer in s["holders"] or s["holders"] for s in images)
        assert report["attributed"] <= report["shm"]["used"]
