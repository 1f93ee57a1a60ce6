# SPDX-License-Identifier: Apache-2.0
"""What report says about real trainings whose memory follows a given pattern (grow.py): each verdict, and steady trainings."""

import concurrent.futures
import os
import shutil

import pytest

from conftest import HERE, PYTHONS, mount_namespace, needs_root, python_of

GROW = HERE / "grow.py"

EXPECTED = {"leak": "leak", "worker-leak": "leak", "cow": "copy-on-write", "sawtooth": "sawtooth",
            "trainer-sawtooth": "sawtooth",
            "backlog": "backlog", "tensors": "fd-leak", "fd": "fd-leak", "page-cache": "page-cache"}

# PyTorch 2.13 fills the pools of its allocator at a constant rate for 40 s. Until they are full, this looks like a
# leak.
POOLS = "--kind steady --side 160 --batch 16 --strategy file_system"

# One of each verdict and some steady ones. Growth is just large enough to be detected in so short a time
# (docs/verdicts.md), and most load few batches per second, to leave the processors to the other tests.
SHORT = [
    "--kind leak --rate 30 --delay 0.1",
    "--kind cow --size 300 --rate 40 --delay 0.1",
    "--kind sawtooth --rate 40 --epochs 4 --delay 0.1",
    "--kind backlog --rate 12",
    "--kind tensors --rate 25 --side 8 --batch 1 --delay 0.02 --open-files 4096",
    "--kind fd --rate 30 --delay 0.1",
    "--kind page-cache --size 500 --rate 35 --delay 0.1",
    "--kind steady --delay 0.1",
    "--kind noisy --size 60 --delay 0.2",
]

# More sizes, rates and ways to load. Slow growth is observed for longer.
LONG = SHORT + [
    "--kind leak --rate 10 --seconds 40",
    "--kind leak --rate 2 --seconds 60",
    "--kind leak --rate 40 --workers 0",
    "--kind leak --rate 15 --epochs 4",
    "--kind leak --rate 4 --epochs 3 --persistent --start-method spawn --seconds 60",
    "--kind worker-leak --rate 3 --persistent --seconds 60",
    "--kind worker-leak --rate 20 --workers 1 --start-method spawn",
    "--kind cow --size 200 --rate 5 --seconds 60",
    "--kind cow --size 800 --rate 60 --workers 1",
    "--kind cow --size 300 --rate 60 --epochs 3",
    "--kind cow --size 200 --rate 30 --epochs 3 --persistent",
    "--kind sawtooth --rate 8 --epochs 3",
    "--kind sawtooth --rate 30 --epochs 6 --workers 1",
    "--kind sawtooth --rate 15 --epochs 4 --start-method spawn",
    "--kind trainer-sawtooth --rate 40 --epochs 5 --persistent --seconds 60",
    "--kind trainer-sawtooth --rate 60 --epochs 5 --workers 0 --seconds 60",
    "--kind trainer-sawtooth --rate 12 --epochs 4 --seconds 60",
    "--kind backlog --rate 3 --side 48 --seconds 60",
    "--kind backlog --rate 25 --side 128 --strategy file_system",
    "--kind backlog --rate 8 --start-method spawn",
    "--kind fd --rate 3 --seconds 60",
    "--kind fd --rate 60 --workers 0",
    "--kind page-cache --size 250 --rate 12",
    "--kind page-cache --size 900 --rate 80 --workers 1",
    "--kind steady --workers 0",
    "--kind steady --epochs 5",
    "--kind steady --epochs 5 --persistent",
    "--kind steady --epochs 3 --start-method spawn",
    POOLS,
    POOLS + " --seconds 80",
    "--kind noisy --size 200 --epochs 3",
    "--kind noisy --size 20 --workers 1",
    "--kind spikes --size 100",
    "--kind spikes --size 1000",
    "--kind step --size 50",
    "--kind step --size 300 --workers 1",
    "--kind settling --size 100",
    "--kind settling --size 400 --workers 0",
]


def expected(workload):
    return EXPECTED.get(workload.split()[1], "steady")


def judge(machine, python, workload, seconds, directory):
    """Records one training, and returns what report says about it."""
    file = directory / "run.db"
    done = machine.shmguard("record", "-q", "-o", file, "--interval", "0.2s", "--", python, "-W", "ignore", GROW,
                            "--seconds", str(seconds), "--scratch", directory, *workload.split(), timeout=600)
    assert done.returncode == 0, done
    return machine.json("report", file)


def judge_all(python, workloads, seconds, at_once, directory):
    """The answers in order. Several trainings run at a time, each with its own /dev/shm."""
    def one(numbered):
        number, workload = numbered
        place = directory / str(number)
        place.mkdir()
        try:
            with mount_namespace("size=2g") as machine:
                return judge(machine, python, workload, seconds, place)
        finally:
            if not os.environ.get("SHMGUARD_KEEP"):
                shutil.rmtree(place)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, enumerate(workloads)))


def outcome(workload, answer):
    overall = answer["overall"]
    if overall == expected(workload) or (workload == POOLS and overall == "too-short"):
        return "right"
    if overall == "too-short":
        return "undecided"
    return "false alarm" if expected(workload) == "steady" else "missed"


def line(workload, answer):
    first = answer["verdicts"][0]
    return (f"{outcome(workload, answer):11}  {workload:76} {answer['overall']:14} {first['confidence']:.2f}  "
            f"{first['evidence']}")


@needs_root
@pytest.mark.slow
@pytest.mark.timed
def test_each_verdict(tmp_path):
    python = python_of("system")
    answers = judge_all(python, SHORT, 12, 3, tmp_path)
    for i, workload in enumerate(SHORT):
        # If the machine is busy half of the time, even a steady training may look as if it had to be observed for
        # longer.
        allowed = ["right", "undecided"] if expected(workload) == "steady" else ["right"]
        if outcome(workload, answers[i]) not in allowed:  # alone, it does not starve
            answers[i], = judge_all(python, [workload], 20, 1, tmp_path)
        assert outcome(workload, answers[i]) in allowed, line(workload, answers[i])
    by_kind = {workload.split()[1]: answer["verdicts"][0] for workload, answer in zip(SHORT, answers)}
    for kind, role, metric in [("leak", "trainer", "private"), ("cow", "worker", "private"), ("backlog", "trainer", "shared"),
                               ("sawtooth", "worker", "private"), ("fd", "trainer", "descriptors"),
                               ("tensors", "trainer", "descriptors"),
                               ("page-cache", "worker", "file")]:
        assert (by_kind[kind]["subject"]["role"], by_kind[kind]["metric"]) == (role, metric)
        assert by_kind[kind]["fixes"] and by_kind[kind]["rate"] > 0
    assert by_kind["leak"]["exhausts_in"] and by_kind["backlog"]["exhausts_in"]
    assert by_kind["cow"]["exhausts_in"] is None and by_kind["steady"]["exhausts_in"] is None
    assert 15 < by_kind["leak"]["rate"] / (1 << 20) < 45
    # 4096 descriptors end long before 2 GiB.
    assert 60 < by_kind["tensors"]["exhausts_in"] < 600 and "4096" in by_kind["tensors"]["evidence"]
    assert "clone()" in str(by_kind["tensors"]["fixes"]) and "h5py" not in str(by_kind["tensors"]["fixes"])
    fd = by_kind["fd"]
    assert f"ls -l /proc/{fd['subject']['pid']}/fd" in [fix["command"] for fix in fd["fixes"]]


@needs_root
@pytest.mark.long
@pytest.mark.parametrize("version", list(PYTHONS))
def test_sizes_and_rates(version, tmp_path):
    answers = judge_all(python_of(version), LONG, 20, 4, tmp_path)
    print()
    for workload, answer in zip(LONG, answers):
        print(line(workload, answer))
    outcomes = [outcome(workload, answer) for workload, answer in zip(LONG, answers)]
    print(version, {kind: outcomes.count(kind) for kind in sorted(set(outcomes))}, "of", len(LONG))
    assert "false alarm" not in outcomes
    assert outcomes.count("right") >= 0.95 * len(LONG)
