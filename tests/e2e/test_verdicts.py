"""What report says of real trainings whose memory does what it is told to (grow.py): each verdict, and steady ones."""

import concurrent.futures
import os
import shutil

import pytest

from conftest import HERE, PYTHONS, mount_namespace, needs_root, python_of

GROW = HERE / "grow.py"

EXPECTED = {"leak": "leak", "worker-leak": "leak", "cow": "copy-on-write", "sawtooth": "sawtooth",
            "trainer-sawtooth": "sawtooth", "backlog": "backlog", "fd": "fd-leak", "page-cache": "page-cache"}

# One of each verdict and some steady ones, each long enough to be fair.
SHORT = [
    "--kind leak --rate 6",
    "--kind cow --size 300 --rate 20",
    "--kind sawtooth --rate 12 --epochs 4",
    "--kind backlog --rate 8",
    "--kind fd --rate 20",
    "--kind page-cache --size 400 --rate 20",
    "--kind steady",
    "--kind noisy --size 60",
]

# Sizes, rates, and ways to load.
LONG = SHORT + [
    "--kind leak --rate 1.5",
    "--kind leak --rate 40 --workers 0",
    "--kind leak --rate 4 --epochs 4",
    "--kind leak --rate 3 --epochs 3 --persistent --start-method spawn",
    "--kind worker-leak --rate 2 --persistent",
    "--kind worker-leak --rate 12 --workers 1 --start-method spawn",
    "--kind cow --size 120 --rate 6",
    "--kind cow --size 800 --rate 60 --workers 1",
    "--kind cow --size 300 --rate 40 --epochs 3",
    "--kind cow --size 200 --rate 30 --epochs 3 --persistent",
    "--kind sawtooth --rate 4 --epochs 3",
    "--kind sawtooth --rate 30 --epochs 6 --workers 1",
    "--kind sawtooth --rate 10 --epochs 4 --start-method spawn",
    "--kind trainer-sawtooth --rate 10 --epochs 5 --persistent",
    "--kind trainer-sawtooth --rate 30 --epochs 5 --workers 0",
    "--kind trainer-sawtooth --rate 10 --epochs 4",
    "--kind backlog --rate 3 --side 32",
    "--kind backlog --rate 25 --side 128 --strategy file_system",
    "--kind backlog --rate 8 --start-method spawn",
    "--kind fd --rate 3",
    "--kind fd --rate 60 --workers 0",
    "--kind page-cache --size 150 --rate 8",
    "--kind page-cache --size 900 --rate 80 --workers 1",
    "--kind steady --workers 0",
    "--kind steady --epochs 5",
    "--kind steady --epochs 5 --persistent",
    "--kind steady --epochs 3 --start-method spawn",
    # PyTorch 2.13 fills pools of its allocator for so long, on a busy machine.
    "--kind steady --side 160 --batch 16 --strategy file_system --seconds 80",
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
    """Records one training, and says what report says of it."""
    file = directory / "run.db"
    done = machine.shmguard("record", "-q", "-o", file, "--interval", "0.1s", "--", python, "-W", "ignore", GROW,
                            "--seconds", str(seconds), "--scratch", directory, *workload.split(), timeout=600)
    assert done.returncode == 0, done
    return machine.json("report", file)


def judge_all(python, workloads, seconds, at_once, directory):
    """The answers, in order; several trainings at a time, each with a /dev/shm of its own."""
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


def right(workload, answer):
    return answer["overall"] == expected(workload)


def line(workload, answer):
    first = answer["verdicts"][0]
    return (f"{'right' if right(workload, answer) else 'WRONG'}  {workload:62} {answer['overall']:14} "
            f"{first['confidence']:.2f}  {first['evidence']}")


@needs_root
@pytest.mark.slow
def test_each_verdict(tmp_path):
    answers = judge_all(python_of("1.13"), SHORT, 12, 4, tmp_path)
    for workload, answer in zip(SHORT, answers):
        assert right(workload, answer), line(workload, answer)
    by_kind = {workload.split()[1]: answer["verdicts"][0] for workload, answer in zip(SHORT, answers)}
    for kind, role, metric in [("leak", "trainer", "private"), ("cow", "worker", "private"), ("backlog", "trainer", "shared"),
                               ("sawtooth", "worker", "private"), ("fd", "trainer", "descriptors"),
                               ("page-cache", "worker", "file")]:
        assert (by_kind[kind]["subject"]["role"], by_kind[kind]["metric"]) == (role, metric)
        assert by_kind[kind]["fixes"] and by_kind[kind]["rate"] > 0
    assert by_kind["leak"]["exhausts_in"] and by_kind["backlog"]["exhausts_in"]
    assert by_kind["cow"]["exhausts_in"] is None and by_kind["steady"]["exhausts_in"] is None
    assert 3 < by_kind["leak"]["rate"] / (1 << 20) < 9


@needs_root
@pytest.mark.long
@pytest.mark.parametrize("version", list(PYTHONS))
def test_sizes_and_rates(version, tmp_path):
    answers = judge_all(python_of(version), LONG, 20, 4, tmp_path)
    print()
    for workload, answer in zip(LONG, answers):
        print(line(workload, answer))
    wrong = [workload for workload, answer in zip(LONG, answers) if not right(workload, answer)]
    assert not [workload for workload in wrong if expected(workload) == "steady"], "a false alarm"
    assert len(wrong) <= len(LONG) * 0.05, wrong
