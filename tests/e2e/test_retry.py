# SPDX-License-Identifier: Apache-2.0
"""`shmguard run --retry`: a training that died is restarted from its newest complete checkpoint, with a smaller batch
if that helps."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import PATIENCE, PROGRAM, needs_root
from test_run import PYTHON, QUIET_PYTHON, end_marked, mark, on_terminal, run_job, script  # noqa: F401

# Trains on samples 0…511 in order. The images of the second half are large: with a batch of 64 they do not fit into a
# /dev/shm of 64 MiB. Logs the samples of each optimizer step, and writes a checkpoint after it.
TRAINING = """
    import argparse, io, json, os, signal, sys
    import torch
    from torch.utils.data import DataLoader, Dataset, Subset

    class Images(Dataset):
        def __len__(self):
            return 512
        def __getitem__(self, index):
            side = 384 if index >= 256 else 32
            # Not a number: collate makes a tensor of numbers, which the queue's thread shares. If that fails, the batch is lost.
            return torch.full((3, side, side), index % 251, dtype=torch.uint8), str(index)

    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--accum", type=int, default=1)
    parser.add_argument("--from", dest="checkpoint")
    parser.add_argument("--fail", default="")
    args = parser.parse_args()
    attempt = int(os.environ["SHMGUARD_ATTEMPT"])
    assert os.environ["SHMGUARD_VALUE_BATCH"] == str(args.batch)

    def save(name, model, done):
        bytes_made = io.BytesIO()
        torch.save({"model": model.state_dict(), "done": done}, bytes_made)
        whole = bytes_made.getvalue()
        with open(name, "wb") as out:
            if attempt == 1 and args.fail == "in-checkpoint" and done == 192:
                out.write(whole[:len(whole) // 2])
                out.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            out.write(whole)

    def train():
        torch.set_num_threads(1)
        model = torch.nn.Linear(1, 1)
        done = 0
        if args.checkpoint:
            state = torch.load(args.checkpoint)
            model.load_state_dict(state["model"])
            done = state["done"]
        log = open("steps", "a")
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        images = Images()
        learned = []
        loader = DataLoader(Subset(images, range(done, len(images))), batch_size=args.batch, num_workers=2)
        for number, (batch, indices) in enumerate(loader, 1):
            loss = model(batch.view(len(batch), -1)[:, :1].float() / 255).mean() / args.accum
            loss.backward()
            learned += map(int, indices)
            if args.fail == "exception" and len(learned) + done > 100:
                raise ValueError("a mistake in the training")
            if number % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
                done += len(learned)
                save(f"ckpt-{done:04}.pt", model, done)
                log.write(json.dumps([attempt, learned[0], len(learned)]) + "\\n")
                log.flush()
                learned = []
        print("finished", done)

    if __name__ == "__main__":
        train()
"""

LADDER = ("--degrade", "batch=64,8", "--degrade", "accum=1,8")
RESUME = ("--resume", "--from {latest:ckpt-*.pt}")


def come_back(machine, environment, tmp_path, python, *arguments, options):
    """Runs TRAINING in tmp_path. Returns the job, its output, the report, and the steps that it made."""
    report_path = tmp_path / "report.json"
    place = machine.within("env", "-C", tmp_path)
    job, out, err = run_job(place, environment, python, *QUIET_PYTHON, script(tmp_path, TRAINING), "--batch", "{batch}",
                            "--accum", "{accum}", *arguments, options=("--report", report_path, *options))
    steps = [json.loads(line) for line in (tmp_path / "steps").read_text().splitlines()]
    return job, out, err, json.loads(report_path.read_text()), steps


def steps_join(steps):
    """Every sample was used, in steps of equal size. Only steps after the last complete checkpoint may be repeated."""
    assert {size for _, _, size in steps} == {64}
    assert sorted({first for _, first, _ in steps}) == list(range(0, 512, 64))
    for attempt in {attempt for attempt, _, _ in steps}:
        firsts = [first for which, first, _ in steps if which == attempt]
        assert firsts == list(range(firsts[0], firsts[0] + 64 * len(firsts), 64))


@needs_root
@pytest.mark.slow
def test_comes_back_smaller(small_shm, python, mark, tmp_path):
    for number in range(3):  # slow workers may not fill /dev/shm at all
        directory = tmp_path / str(number)
        directory.mkdir()
        job, out, err, report, steps = come_back(small_shm, mark, directory, python,
                                                 options=("--no-guard", "--retry", "3", *LADDER, *RESUME))
        assert (job.returncode, out) == (0, "finished 512\n"), err
        assert report["exit"] == {"code": 0, "signal": None} and report["cause"]["id"] == "ok"
        if len(report["attempts"]) > 1:
            break
    first, second = report["attempts"]
    assert first["cause"]["id"] == "shm-exhausted" and first["exit"]["code"] != 0
    assert first["values"] == {"batch": "64", "accum": "1"} and second["values"] == {"batch": "8", "accum": "8"}
    assert first["command"][-1] == "1" and second["command"][-2] == "--from"
    taken = second["command"][-1]
    assert re.search(rf"^shmguard: attempt 2 of 4 starts in 1 s, because the last one failed: shm-exhausted\. Changed: batch=64 (→|->) 8, accum=1 (→|->) 8\. "
                     rf"The effective batch stays 64\. Continuing from {re.escape(taken)}", err, re.M), err
    steps_join(steps)
    assert [first for attempt, first, _ in steps if attempt == 2][0] == int(taken[5:9]) > 0


@needs_root
def test_an_exception_is_not_tried_again(small_shm, python, mark, tmp_path):
    job, _, err, report, _ = come_back(small_shm, mark, tmp_path, python, "--fail", "exception",
                                       options=("--retry", "3", *LADDER, *RESUME))
    assert job.returncode == 1
    assert [attempt["cause"]["id"] for attempt in report["attempts"]] == ["python-error"]
    assert "not tried again: the same exception would occur again" in err


@needs_root
@pytest.mark.slow
def test_killed_while_it_saves(private_shm, python, mark, tmp_path):
    """The newest checkpoint is truncated, so the one before it is used, with the same values."""
    job, out, err, report, steps = come_back(private_shm, mark, tmp_path, python, "--fail", "in-checkpoint",
                                             options=("--retry", "1", *LADDER, *RESUME))
    assert (job.returncode, out) == (0, "finished 512\n"), err
    assert [attempt["cause"]["id"] for attempt in report["attempts"]] == ["killed", "ok"]
    assert [attempt["values"]["batch"] for attempt in report["attempts"]] == ["64", "64"]
    assert report["attempts"][1]["command"][-2:] == ["--from", "ckpt-0128.pt"]
    assert "attempt 2 of 2 starts in 1 s, because the last one failed: killed. The values stay the same. Continuing from ckpt-0128.pt. " \
           "Skipped: ckpt-0192.pt (truncated)." in err
    steps_join(steps)
    # The guard starts afresh for each attempt, and keeps nothing of the one before.
    guard = report["guard"]
    served = guard["segments_created"] + guard["segments_reused"] + guard["small_backed"] + guard["fallbacks"]
    assert guard["active"] and 0 < served <= 2 * len([step for step in steps if step[0] == 2])


SHELL = "echo attempt $SHMGUARD_ATTEMPT \"$@\" >> log; "


def shell_job(machine, environment, tmp_path, end, *options):
    job, _, err = run_job(machine.within("env", "-C", tmp_path), environment, "sh", "-c", SHELL + end, "sh",
                          options=("--no-guard", *options))
    return job, err, (tmp_path / "log").read_text().splitlines()


def test_without_a_checkpoint(here, mark, tmp_path):
    job, err, log = shell_job(here, mark, tmp_path, "exit 3", "--retry", "1", *RESUME)
    assert (job.returncode, log) == (3, ["attempt 1", "attempt 2"])
    assert " Starting from the beginning, because no complete checkpoint matches ckpt-*.pt.\n" in err
    assert "not tried again: that was the last attempt" in err


def test_an_old_checkpoint_is_named_as_such(here, mark, tmp_path):
    (tmp_path / "ckpt-1.pt").write_text("x")
    os.utime(tmp_path / "ckpt-1.pt", (time.time() - 7200,) * 2)
    job, err, log = shell_job(here, mark, tmp_path, "[ $SHMGUARD_ATTEMPT = 2 ]", "--retry", "1", *RESUME)
    assert (job.returncode, log) == (0, ["attempt 1", "attempt 2 --from ckpt-1.pt"])
    assert "Continuing from ckpt-1.pt, which is 2 h older than this run." in err


def test_a_checkpoint_that_somebody_else_writes(here, mark, tmp_path):
    (tmp_path / "ckpt-1.pt").write_text("x")
    with open(tmp_path / "ckpt-2.pt", "w", encoding="ascii") as out:
        out.write("half")
        out.flush()
        _, err, log = shell_job(here, mark, tmp_path, "exit 3", "--retry", "1", *RESUME)
    assert log[1] == "attempt 2 --from ckpt-1.pt"
    assert "Skipped: ckpt-2.pt (still being written)." in err


def test_attempts_take_turns(here, mark, tmp_path):
    began = time.monotonic()
    job, err, log = shell_job(here, mark, tmp_path, "exit 3", "--retry", "2")
    assert (job.returncode, len(log)) == (3, 3)
    assert time.monotonic() - began >= 3
    assert "attempt 2 of 3 starts in 1 s, because the last one failed: unknown.\n" in err and "attempt 3 of 3 starts in 2 s, because the last one failed: unknown.\n" in err


def test_quiet(here, mark, tmp_path):
    job, err, log = shell_job(here, mark, tmp_path, "exit 3", "--retry", "1", "--quiet")
    assert (job.returncode, err, len(log)) == (3, "", 2)


@pytest.mark.parametrize("end, why", [
    ("kill -INT $$", "it was asked to stop"),
    ("kill -TERM $$", "it was asked to stop"),
    ("exit 130", "it was asked to stop"),
])
def test_what_is_not_tried_again(here, mark, tmp_path, end, why):
    _, err, log = shell_job(here, mark, tmp_path, end, "--retry", "2")
    assert len(log) == 1 and f"not tried again: {why}\n" in err


def test_no_known_matter_of_size(here, mark, tmp_path):
    _, err, log = shell_job(here, mark, tmp_path, "kill -KILL $$", "--retry", "2", "--degrade", "batch=2,1")
    assert len(log) == 1 and "not tried again: smaller values do not help against this" in err


def test_a_command_that_cannot_start(here, mark):
    job, _, err = run_job(here, mark, "/nonexistent/command", options=("--retry", "2"))
    assert job.returncode == 127 and "not tried again: it could not be started" in err


@pytest.mark.parametrize("guard", [(), ("--no-guard",)])
@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.timed
def test_a_signal_in_the_pause(here, mark, tmp_path, signo, guard):
    report_path = tmp_path / "report.json"
    job = here.popen(PROGRAM, "run", *guard, "--retry", "9", "--report", report_path, "--", "sh", "-c",
                     "[ $SHMGUARD_ATTEMPT = 3 ] && echo third; exit 3",
                     env=mark, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"third\n"
        time.sleep(0.5)  # the pause takes four seconds
        job.send_signal(signo)
        asked = time.monotonic()
        _, err = job.communicate(timeout=PATIENCE)
        assert time.monotonic() - asked < 3
    finally:
        end_marked(mark)
        job.wait()
    assert job.returncode == 3
    assert b"not tried again: it was asked to stop" in err
    assert len(json.loads(report_path.read_text())["attempts"]) == 3


def test_a_signal_to_the_supervisor_ends_all_attempts(here, mark, tmp_path):
    """Even if the command handles the signal and exits with a code of its own."""
    job = here.popen(PROGRAM, "run", "--retry", "9", "--", "sh", "-c", "trap 'exit 5' TERM; echo ready; sleep 3600 & wait",
                     env=mark, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert job.stdout.readline() == b"ready\n"
        job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=PATIENCE)
    finally:
        end_marked(mark)
        job.wait()
    assert job.returncode == 5 and b"not tried again: it was asked to stop" in err


@pytest.mark.timed
def test_control_c_in_the_pause(mark):
    with on_terminal(PROGRAM, "run", "--retry", "9", "--", "sh", "-c", "[ $SHMGUARD_ATTEMPT = 3 ] && echo third; exit 3",
                     env=mark) as terminal:
        terminal.expect(b"attempt 4 of 10 starts in 4 s")
        terminal.type(b"\x03")
        terminal.expect(b"not tried again: it was asked to stop", 2)
        assert terminal.wait() == -signal.SIGINT  # so that a loop in the shell ends, too


def test_second_attempt_has_the_terminal(mark):
    with on_terminal(PROGRAM, "run", "-q", "--retry", "1", "--", "bash", "--norc", "-c",
                     "[ $SHMGUARD_ATTEMPT = 2 ] || exit 3; read -p 'name? ' x; echo got $x; exit 4",
                     env=mark) as terminal:
        terminal.expect(b"name? ")
        terminal.type(b"Ada\n")
        terminal.expect(b"got Ada")
        assert terminal.wait() == 4


@pytest.mark.parametrize("options, words", [
    (("--degrade", "a=1"), "needs --retry N"),
    (("--resume", "x"), "needs --retry N"),
    (("--retry", "x"), "a whole number"),
    (("--retry", "-1"), "a whole number"),
    (("--retry", "1", "--degrade", "a"), "no values"),
    (("--retry", "1", "--degrade", "a=1,,2"), "is empty"),
    (("--retry", "1", "--degrade", "a-b=1"), '"a-b"'),
    (("--retry", "1", "--degrade", "a=1", "--degrade", "A=2"), "given before"),
    (("--retry", "1", "--degrade", "\033=1"), "\\x1b"),
    (("--retry", "1", "--resume", ""), "no arguments"),
    (("--retry", "1", "--resume", "'x"), "has a quote that is not closed"),
    (("--retry", "1", "--resume", "{latest:"), "no closing brace"),
    (("--retry", "1", "--resume", "$HOME"), "no shell expands"),
    (("--shm", "64"), "auto or off"),
    (("--shm", "on"), "auto or off"),
    (("--budget", "much"), "auto or off"),
    (("--wait", "long"), "seconds"),
])
def test_wrong_options(here, tmp_path, options, words):
    started = tmp_path / "started"
    done = here.shmguard("run", *options, "--", "touch", started)
    assert done.returncode == 64 and words in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert not started.exists()


def test_braces_that_are_no_names(here, mark):
    _, out, _ = run_job(here, mark, "printf", "%s|", "{a:1}", "{}", "{n}", "x={n}{m}", "{\"n\":{n}}",
                        options=("-q", "--no-guard", "--retry", "0", "--degrade", "n=7,6"))
    assert out == "{a:1}|{}|7|x=7{m}|{\"n\":7}|"


def test_help_fits(here):
    lines = here.shmguard("run", "--help").stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
