# SPDX-License-Identifier: Apache-2.0
"""Removing what belongs to nobody, and only that. These tests run last: an orphan is a minute old (see leftovers.py)."""

import os
import re
import socket
import subprocess

import pytest

from conftest import MIB, PYTHONS, as_user, end_tree, holder, needs_root, open_to_all, python_of, wait_until
from leftovers import ALICE, BOB, DAVE, IN_USE, KNOWN, OTHER, SERVERS, WAITING, make
from manifests import built, pod_specs
from pod import TOKEN, Pod, image, serve_pod

pytestmark = [needs_root, pytest.mark.outside]  # inside, others could hold what nobody seems to hold


@pytest.fixture
def old(leftovers):
    leftovers.old()
    return leftovers


def escaped(name):
    return name.replace("\n", "\\n").replace("\x1b", "\\x1b")


def names(machine):
    """Everything below /dev/shm that is no directory."""
    return {os.path.relpath(os.path.join(root, file), machine.shm) for root, _, files in os.walk(machine.shm) for file in files}


def orphans(machine):
    """Of the mount: name → what ps says about its being an orphan."""
    device = os.stat(machine.shm).st_dev
    return {s["name"]: s["orphan"] for s in machine.json("ps")["segments"]
            if s["device"] == f"{os.major(device)}:{os.minor(device)}"}


def why(answer):
    return {kept["name"]: kept["why"] for kept in answer["kept"]}


HOLD = """
import mmap, os, sys
held = open("/dev/shm/psm_be1d0001", "rb")
with open("/dev/shm/psm_3a99ed01", "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 4096)
for number in map(int, os.listdir("/proc/self/fd")):
    if number > 2 and os.path.realpath(f"/proc/self/fd/{number}") == "/dev/shm/psm_3a99ed01":
        os.close(number)
"""


def test_what_is_removed_and_what_is_kept(old):
    machine = old.many
    make(machine, {"psm_f2e50001": 4096})
    os.chmod(machine.shm / "psm_70c4ed01", 0o640)
    before = names(machine)
    removable = {*KNOWN, "psm_59a25e01", "torch_777_888_0"}
    kept = {*OTHER, "psm_be1d0001", "psm_3a99ed01", "psm_70c4ed01", "psm_f2e50001"}
    # Of two names of one file, either may be the one that is looked at.
    linked = {"psm_114ced01", "keepsake"}
    with holder(machine, HOLD) as pid:
        dry = machine.json("clean", "--dry-run", codes=(0,))
        assert dry["dry_run"] and names(machine) == before, "a dry run removes nothing"
        assert set(dry["removed"]) - linked == set(map(escaped, removable))
        assert set(why(dry)) - linked == set(map(escaped, kept))

        used = machine.shm_used
        done = machine.json("clean", codes=(0,))
        assert not done["dry_run"]
        assert (done["removed"], set(why(done))) == (dry["removed"], set(why(dry)))
        assert used - machine.shm_used == done["freed"]
        assert done["freed"] == 3 * MIB + (len(removable) - 3) * 4096
        assert dry["freed"] in (done["freed"], done["freed"] + 4096)  # the file with two names frees nothing

        gone = before - names(machine)
        assert gone - linked == removable and len(gone & linked) <= 1
        reasons = why(done)
        assert f"pid {pid}" in reasons["psm_be1d0001"] and f"pid {pid}" in reasons["psm_3a99ed01"]
        assert "changed" in reasons["psm_f2e50001"] and "changed" in reasons["psm_70c4ed01"]
        assert all("kind" in reasons[name] for name in OTHER)

    # What is no file of its own is not touched, and nothing is reached through it.
    assert old.outside.read_text() == "not shared memory\n"
    assert os.path.islink(machine.shm / "torch_9_9_9") and os.path.islink(machine.shm / "psm_114c0001")
    assert (machine.shm / "psm_f1f00001").is_fifo() and (machine.shm / "psm_d12ec701").is_dir()
    # A second time there is nothing to do, but for what nobody holds any more.
    again = machine.json("clean", codes=(0,))
    assert set(again["removed"]) - linked == {"psm_be1d0001", "psm_3a99ed01"}


def test_an_ordinary_user_removes_their_own(old, ordinary):
    machine = old.users
    alice = ordinary(machine, uid=ALICE)
    everything = names(machine)
    # Root has one of her files open, which she cannot see; the kernel knows.
    with holder(machine, "held = open('/dev/shm/psm_a11cebe1')"):
        done = alice.json("clean", codes=(0,))
        assert done["removed"] == ["psm_a11ce001"] and done["freed"] == MIB
        assert names(machine) == everything - {"psm_a11ce001"}
        reasons = why(done)
        assert "open in a process" in reasons["psm_a11cebe1"]
        for name in ["psm_b0b00001", "psm_b0b5ec2e", "psm_20070001"]:
            assert "its owner or root" in reasons[name]

        # Who may ask the kernel about everybody's files, but not remove them, is told what is lacking.
        lessee = machine.within(*as_user(ALICE, "--inh-caps=+lease", "--ambient-caps=+lease"), program=alice.program)
        done = lessee.shmguard("clean")
        assert done.returncode == 77 and done.stderr.count(b"\n") == 1
        assert b"2 orphans" in done.stderr and b"permission" in done.stderr and b"root" in done.stderr
        assert b"psm_b0b00001" in done.stderr or b"psm_20070001" in done.stderr
        assert b"Operation not permitted" in done.stdout and str(BOB).encode() in done.stdout
        assert lessee.json("clean", codes=(77,))["removed"] == []
        assert names(machine) == everything - {"psm_a11ce001"}

    assert set(machine.json("clean", codes=(0,))["removed"]) == everything - {"psm_a11ce001"}


def test_processes_that_cannot_be_seen(old):
    """In a pid namespace, others may share the mount: nothing is an orphan for sure."""
    machine = old.pidns
    inside = machine.within("unshare", "-pf", "--mount-proc")
    assert orphans(inside) == {"psm_1ef70001": "unknown"}
    done = inside.json("clean", codes=(0,))
    assert done["removed"] == [] and "not visible" in why(done)["psm_1ef70001"]
    assert names(machine) == {"psm_1ef70001"}
    assert inside.doctor()["by_id"].get("shm-orphans") is None

    # From outside, everybody has a number: who holds it in there is known.
    program = "import sys; held = open('/dev/shm/psm_1ef70001'); print('ready', flush=True); sys.stdin.read()"
    job = inside.popen(PYTHONS["system"], "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        assert orphans(machine) == {"psm_1ef70001": "no"}
        assert "held by pid" in why(machine.json("clean", codes=(0,)))["psm_1ef70001"]
    finally:
        job.communicate()
    assert orphans(machine) == {"psm_1ef70001": "yes"}
    assert "shmguard clean" in str(machine.doctor()["by_id"]["shm-orphans"]["fixes"])
    assert machine.json("clean", codes=(0,))["removed"] == ["psm_1ef70001"]


HOLD_IN_EACH_WAY = """
import fcntl, mmap, os
def path(how):
    return f"/dev/shm/vllm_offload_{how}.mmap"
def mapped(how, flags, prot):
    number = os.open(path(how), os.O_RDWR if how == "mapped" else os.O_RDONLY)
    memory = mmap.mmap(number, 4096, flags, prot)
    os.close(number)
    for other in map(int, os.listdir("/proc/self/fd")):  # mmap has a copy of its own
        if other > 2 and os.path.realpath(f"/proc/self/fd/{other}") == path(how):
            os.close(other)
    return memory
held = [open(path("open"), "rb"), mapped("mapped", mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        mapped("readonly", mmap.MAP_SHARED, mmap.PROT_READ), mapped("private", mmap.MAP_PRIVATE, mmap.PROT_READ)]
locked = open(path("locked"), "rb")
fcntl.flock(locked, fcntl.LOCK_EX)
"""


def test_pods_that_share_a_mount(old, ordinary):
    """What an inference server left is removed inside a pod, by the kernel's word alone: it knows the holders in other pods."""
    machine = old.pods
    before = names(machine)
    pods = [machine.alone(), ordinary(machine.alone(), uid=ALICE)]  # as root, and as the owner of the files
    for other in [machine.alone(), machine.alone().within(*as_user(ALICE))]:
        with holder(other, HOLD_IN_EACH_WAY):
            for pod in pods:
                seen = orphans(pod)
                assert {name: seen[name] for name in SERVERS} == dict.fromkeys(SERVERS, "yes")
                assert {name: seen[name] for name in IN_USE} == dict.fromkeys(IN_USE, "no"), "in use in another pod"
                assert {name: seen[name] for name in WAITING} == dict.fromkeys(WAITING, "unknown")
                finding = pod.doctor()["by_id"]["shm-orphans"]
                assert "vLLM" in finding["evidence"] and "shmguard clean" in str(finding["fixes"])
                # What the user vouches for does not help against the kernel's word.
                dry = pod.json("clean", "--private", "--dry-run", codes=(0,))
                assert set(dry["removed"]) == {*SERVERS, *WAITING} and set(why(dry)) == {*IN_USE, "vllm_notes.mmap"}
    # Root of a container seldom may ask about another user's files: then nothing is known, and nothing removed.
    bounded = machine.alone().within("setpriv", "--bounding-set=-lease")
    assert set(orphans(bounded).values()) == {"unknown"}
    kept = why(bounded.json("clean", codes=(0,)))
    assert all("CAP_LEASE" in kept[name] for name in SERVERS)
    with holder(machine.alone(), HOLD_IN_EACH_WAY):
        done = pods[1].json("clean", codes=(0,))
    assert set(done["removed"]) == set(SERVERS) and names(machine) == before - set(SERVERS)
    assert all("open in a process" in why(done)[name] for name in IN_USE)
    assert all("not visible" in why(done)[name] for name in WAITING)
    # Nobody holds the rest any more, and this pod is alone with its /dev/shm.
    assert set(pods[1].json("clean", "--private", codes=(0,))["removed"]) == {*WAITING, *IN_USE}


def test_what_waits_for_its_receiver(old):
    """A file that its maker has closed and sent by name. The pid in the name is that of the maker's own namespace."""
    machine, maker = old.sender
    name, = names(machine)
    assert name.startswith("sgl_shm_mm_")
    assert orphans(machine) == {name: "unknown"}
    done = machine.json("clean", codes=(0,))
    assert done["removed"] == [] and "its creator (pid" in why(done)[name]
    end_tree(maker)
    assert orphans(machine) == {name: "yes"}
    assert machine.json("clean", codes=(0,))["removed"] == [name]


def test_a_proc_that_hides_others(old, ordinary):
    machine = old.hidden
    alice = ordinary(machine, uid=ALICE)
    assert orphans(alice) == {"psm_1ef70001": "yes"}
    machine.run("mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc")
    assert orphans(alice) == {"psm_1ef70001": "unknown"}
    assert alice.json("clean", codes=(0,))["removed"] == []
    assert machine.json("clean", codes=(0,))["removed"] == ["psm_1ef70001"], "root is not fooled"


def test_a_mount_that_is_read_only(old):
    machine = old.readonly
    assert machine.run("mount", "-o", "remount,ro", "/dev/shm").returncode == 0
    done = machine.shmguard("clean")
    assert done.returncode == 77 and done.stderr.count(b"\n") == 1 and b"read-only" in done.stderr
    assert names(machine) == {"psm_1ef70001"}
    remedy = done.stderr.decode().rpartition(": ")[2]
    assert machine.run("sh", "-ec", remedy).returncode == 0
    assert machine.json("clean", codes=(0,))["removed"] == ["psm_1ef70001"]


def test_a_descriptor_in_flight(old):
    """Open in no process at all: sent through a socket and not yet received. Only the kernel knows."""
    machine = old.flight
    sender, receiver = socket.socketpair()
    with open(machine.shm / "psm_1ef70001", "rb") as file:
        socket.send_fds(sender, [b"x"], [file.fileno()])
    done = machine.json("clean", codes=(0,))
    assert done["removed"] == [] and "psm_1ef70001" in why(done)
    receiver.close()
    assert machine.json("clean", codes=(0,))["removed"] == ["psm_1ef70001"]
    sender.close()


OPEN_AND_LET_GO = """
import os, random, select, sys, time
print("ready", flush=True)
broken = opened = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    held = []
    for name in random.sample(sys.argv[1:], 40):
        try:
            fd = os.open("/dev/shm/" + name, os.O_RDWR)
        except FileNotFoundError:
            continue
        held.append((fd, os.fstat(fd).st_nlink))
    time.sleep(0.002)
    for fd, links in held:
        opened += 1
        broken += links == 1 and os.fstat(fd).st_nlink == 0
        os.close(fd)
print(opened, broken)
"""


def test_opened_between_the_look_and_the_removal(old):
    """A process opens and closes the files all the time. None may lose its name while it is open."""
    machine = old.race
    files = names(machine)
    job = machine.popen(PYTHONS["system"], "-c", OPEN_AND_LET_GO, *files, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    removed, reasons = set(), set()
    try:
        assert job.stdout.readline() == b"ready\n"
        for _ in range(30):
            done = machine.json("clean", codes=(0,))
            removed |= set(done["removed"])
            reasons |= set(why(done).values())
            if len(removed) == len(files):
                break
    finally:
        counts = job.communicate(b"stop\n")[0]
    opened, broken = map(int, counts.split())
    assert names(machine) == files - removed
    assert opened > 50 and removed and reasons, "it was no race"
    assert broken == 0


@pytest.mark.parametrize("version", PYTHONS)
def test_what_a_killed_training_leaves(old, version):
    python_of(version)
    machine, _ = old.jobs[version]
    left = names(machine)
    assert len([name for name in left if name.startswith("torch_")]) >= 4
    assert orphans(machine) == {name: "yes" for name in left}
    finding = machine.doctor()["by_id"]["shm-orphans"]
    assert f"{len(left)} segments" in finding["evidence"]
    done = machine.json("clean", codes=(0,))
    assert set(done["removed"]) == left and done["kept"] == []
    assert names(machine) == set() and machine.shm_used == 0
    assert "shm-orphans" not in machine.doctor()["by_id"]


def test_while_the_manager_lives(old):
    machine, _ = old.jobs["manager"]
    left = names(machine)
    assert left and orphans(machine) == {name: "unknown" for name in left}
    done = machine.json("clean", codes=(0,))
    manager = old.stopped["manager"]
    assert done["removed"] == [] and names(machine) == left
    for reason in why(done).values():
        assert "torch_shm_manager" in reason and any(f"pid {pid}" in reason for pid in manager)
    old.kill_managers("manager")
    assert set(machine.json("clean", codes=(0,))["removed"]) == left


def test_text_for_people(private_shm):
    make(private_shm, {"psm_f2e50001": 4096, "dataset.bin": 4096})
    lines = private_shm.shmguard("clean", "-n").stdout.decode().splitlines()
    assert lines[0] == "Kept" and lines[-1] == "0 would be removed, 2 kept, 0 B would be freed"
    assert any(line.startswith("psm_f2e50001 ") and "changed" in line for line in lines)
    assert any(line.startswith("dataset.bin ") and "kind" in line for line in lines)


def test_a_server_in_kubernetes(old, tmp_path):
    """What a crash left in the node's /dev/shm is gone before the server starts, in a new pod and when its container is started again.
    serve counts it as orphans meanwhile, which needs CAP_LEASE."""
    deployment, = [spec for thing in built("server") for spec in pod_specs(thing)]
    daemons = [spec for thing in built("serve") for spec in pod_specs(thing)]
    open_to_all(tmp_path)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "server.py").write_text("import os; print(sorted(os.listdir('/dev/shm')))")
    images = {"shmguard": {"/shmguard": image(tmp_path / "image")}, "server": {"/workspace": workspace}}
    machine = old.node
    everything = names(machine)
    serve = serve_pod(daemons[0], tmp_path, images, machine)
    for without, orphaned in [((), range(len(SERVERS), len(everything) + 1)), (("LEASE",), [0])]:
        with serve.running(serve.containers()["serve"], without=without) as ask:
            wait_until(lambda: "\nshmguard_orphans " in ask("/metrics", TOKEN)[1], "the first survey is there")  # noqa: B023
            assert int(re.search(r"^shmguard_orphans (\d+)$", ask("/metrics", TOKEN)[1], re.M).group(1)) in orphaned

    server = Pod(deployment, tmp_path, images, machine, node={"shm": "/dev/shm"})
    with holder(machine, "held = open('/dev/shm/vllm_ec_5e0c7a52.mmap')"):
        server.prepare()
        assert names(machine) == everything - (set(SERVERS) - {"vllm_ec_5e0c7a52.mmap"})
    done = server.run(server.containers()["server"])
    kept = everything - set(SERVERS)
    assert done.returncode == 0 and done.stdout.endswith(f"{sorted(kept)}\n") and names(machine) == kept
