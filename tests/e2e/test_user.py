# SPDX-License-Identifier: Apache-2.0
"""What an ordinary user sees: their own jobs exactly, and only the total of everything else."""

import os

import pytest

from conftest import MIB, NOBODY, children, holder, needs_root
from test_ps import BATCH_BYTES, IN_FLIGHT, MAPPED_ONLY, holders_by_hand

pytestmark = needs_root


@pytest.fixture
def user(private_shm, ordinary):
    return ordinary(private_shm)


def reachable(user, python):
    if user.run(python, "-c", "import ctypes").returncode != 0:
        pytest.skip(f"an ordinary user cannot reach {python}")
    return python


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_own_job(private_shm, user, python, public, strategy):
    with user.training(reachable(user, python), "--strategy", strategy, train=public / "train.py") as trainer:
        tree = [trainer, *children(trainer)]
        seen = user.json("ps")
        processes = {process["pid"]: process for process in seen["processes"]}
        roles = sorted(processes[pid]["role"] for pid in tree if pid in processes)
        assert [role for role in roles if role != "manager"] == ["trainer", "worker", "worker"]
        assert ("manager" in roles) == (strategy == "file_system")
        assert all(processes[pid]["uid"] == NOBODY for pid in tree if pid in processes)
        for pid in processes.keys() & set(tree):
            assert None not in (processes[pid]["pss"], processes[pid]["uss"], processes[pid]["fds"])

        device = os.stat(private_shm.shm).st_dev
        ours = [s for s in seen["segments"] if s["device"] == f"{os.major(device)}:{os.minor(device)}"]
        images = [s for s in ours if s["kind"] == "torch" and s["size"] >= BATCH_BYTES]
        assert len(images) == IN_FLIGHT
        for segment in ours:
            assert set(segment["holders"]) == holders_by_hand(tree, segment["device"], segment["inode"])
        waiting = sum(s["allocated"] for s in ours if not s["holders"])
        assert seen["attributed"] + waiting == pytest.approx(private_shm.shm_used, rel=0.01)

        # Root sees the same, except that it can ask the kernel for more.
        known = {(s["device"], s["inode"]): s for s in private_shm.json("ps")["segments"]}
        for segment in ours:
            root = known[segment["device"], segment["inode"]]
            assert segment["holders"] == root["holders"] and segment["name"] == root["name"]
            if segment["allocated_source"] == "measured":
                assert (segment["size"], segment["allocated"]) == (root["size"], root["allocated"])

        report = user.doctor("--pid", trainer)
        assert f"pid {trainer} holds" in report["by_id"]["shm-need"]["evidence"]
        assert not report["environment"]["can_remount"]


def test_others_are_counted_and_not_hidden(private_shm, user):
    """What root holds without a name is invisible to a user, but its bytes are counted as used."""
    with holder(private_shm, MAPPED_ONLY) as pid:
        seen = user.json("ps")
        assert seen["unreadable_processes"] > private_shm.json("ps")["unreadable_processes"]
        assert pid not in [process["pid"] for process in seen["processes"]]
        assert not any(pid in segment["holders"] for segment in seen["segments"])
        assert (seen["attributed"], seen["unattributed"]) == (0, 4 * MIB)
        everybody = {process["pid"]: process for process in user.json("ps", "--all")["processes"]}
        assert everybody[pid]["uid"] == 0 and everybody[pid]["shm"] is None and everybody[pid]["fds"] is None
        text = user.shmguard("ps").stdout.decode()
        assert "processes of other users could not be read" in text
        assert any("may not be read" in line for line in user.doctor()["skipped"])


def test_only_mapped_is_estimated(private_shm, user):
    with holder(user, MAPPED_ONLY) as pid:
        nccl = next(s for s in user.json("ps")["segments"] if s["holders"] == [pid])
        assert nccl["kind"] == "nccl" and nccl["deleted"] and nccl["allocated_source"] == "estimated"
        assert (nccl["size"], nccl["allocated"]) == (8 * MIB, 4 * MIB)
        assert "~4.0 MiB" in user.shmguard("ps", "--segments").stdout.decode()
        root = next(s for s in private_shm.json("ps")["segments"] if s["holders"] == [pid])
        assert root["allocated_source"] == "measured" and root["allocated"] == 4 * MIB
        assert "~" not in private_shm.shmguard("ps", "--segments", "--pid", pid).stdout.decode()


def test_another_user_is_not_read(private_shm, user, ordinary):
    """Two ordinary users: neither sees the other's descriptors, and asking for them by pid is refused."""
    with holder(user, MAPPED_ONLY) as pid:
        other = ordinary(private_shm, uid=64321)
        assert not any(pid in segment["holders"] for segment in other.json("ps")["segments"])
        refused = other.shmguard("ps", "--pid", pid)
        assert refused.returncode == 77 and f"process {pid} ".encode() in refused.stderr


def test_a_proc_that_hides_others(private_shm, user):
    """With hidepid=2, other users' processes are not even listed. (test_clean.py checks that they may hold orphans.)"""
    private_shm.run("mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc")
    seen = user.json("ps", "--all")
    assert {process["uid"] for process in seen["processes"]} == {NOBODY}
    # Root still sees all processes.
    assert len(private_shm.json("ps", "--all")["processes"]) > len(seen["processes"])
