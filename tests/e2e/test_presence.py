# SPDX-License-Identifier: Apache-2.0
"""The guard is in every process of the job, whatever happens to its environment and its user. If not, the run says
where and why."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import NOBODY, PROGRAM, PROJECT, PYTHONS, SANITIZED, TRAIN, as_user, mount_namespace, needs_root
from test_run import PYTHON, QUIET_PYTHON, STRATEGIES, mark, run_job, wait_until  # noqa: F401 (mark is a fixture)

pytestmark = pytest.mark.skipif(SANITIZED, reason="an instrumented library cannot be preloaded into a plain program")

LIBRARY = str(pathlib.Path(PROGRAM).resolve().parent / "libshmguard-preload.so")
CRASH = PROJECT / "tests" / "e2e" / "crash.py"

# What a process has of the guard: the library, and the socket of the supervisor.
SHOW = ("import os; print('libshmguard-preload' in open('/proc/self/maps').read(), os.environ.get('SHMGUARD_SOCKET', '')[:9], "
        "os.environ.get('LD_PRELOAD', ''))")
SHOW_SHELL = f'{PYTHON} -c "{SHOW}"'


def in_python(code):
    return (PYTHON, "-c", f"import os, subprocess, sys\nshow = ['{PYTHON}', '-c', sys.argv[1]]\n{textwrap.dedent(code)}", SHOW)


WAYS = {
    "another preload": ("sh", "-c", f"export LD_PRELOAD=libdl.so.2; {SHOW_SHELL}"),
    "behind another preload": ("sh", "-c", f"export LD_PRELOAD=libdl.so.2:$LD_PRELOAD; {SHOW_SHELL}"),
    "unset": ("sh", "-c", f"unset LD_PRELOAD; {SHOW_SHELL}"),
    "empty": ("sh", "-c", f"LD_PRELOAD= SHMGUARD_SOCKET= {SHOW_SHELL}"),
    "bash": ("bash", "-c", f"unset LD_PRELOAD SHMGUARD_SOCKET; exec {SHOW_SHELL}"),
    "env -i": ("env", "-i", PYTHON, "-c", SHOW),
    "env -u": ("env", "-u", "SHMGUARD_SOCKET", PYTHON, "-c", SHOW),
    "isolated": ("env", "-i", PYTHON, "-I", "-c", SHOW),
    "nohup, setsid, timeout": ("env", "-i", "nohup", "setsid", "--wait", "timeout", "60", PYTHON, "-c", SHOW),
    "xargs": ("sh", "-c", f"echo | env -i xargs {PYTHON} -c \"{SHOW}\""),
    "execv": in_python("os.environ.clear(); os.execv(show[0], show)"),
    "execve": in_python("os.execve(show[0], show, {})"),
    "subprocess": in_python("subprocess.run(show, env={})"),
    "subprocess without vfork": in_python("subprocess.run(show, env={}, preexec_fn=lambda: None)"),
    "posix_spawn": in_python("os.waitpid(os.posix_spawn(show[0], show, {}), 0)"),
    "system": in_python("os.environ.clear(); os.environ['SHOW'] = show[2]; os.system(show[0] + ' -c \"$SHOW\"')"),
    "popen": in_python("os.environ.pop('LD_PRELOAD'); os.environ['SHOW'] = show[2]\nprint(os.popen(show[0] + ' -c \"$SHOW\"').read(), end='')"),
    "spawn": in_python("""
        import multiprocessing
        os.environ.clear()
        process = multiprocessing.get_context("spawn").Process(target=exec, args=(sys.argv[1],))
        process.start()
        process.join()
        """),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_lost_environment_is_put_back(here, mark, way):
    job, out, err = run_job(here, mark, *WAYS[way], options=("-q",))
    assert job.returncode == 0, err
    loaded, socket, preload = out.rstrip("\n").split(" ", 2)
    assert (loaded, socket) == ("True", "shmguard-")
    expected = {"another preload": f"{LIBRARY}:libdl.so.2", "behind another preload": f"libdl.so.2:{LIBRARY}"}
    assert preload == expected.get(way, LIBRARY)
    assert "ERROR: ld.so" not in err


@needs_root
def test_make_and_su(here, mark, tmp_path):
    (tmp_path / "Makefile").write_text(f"unexport LD_PRELOAD SHMGUARD_SOCKET\nall:\n\t@{SHOW_SHELL}\n")
    job, out, err = run_job(here, mark, "make", "-s", "-C", tmp_path, options=("-q",))
    assert (job.returncode, out[:14]) == (0, "True shmguard-"), err
    if subprocess.run(["su", "-", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        pytest.skip("su does not work here")
    job, out, err = run_job(here, mark, "su", "-", "-c", SHOW_SHELL, options=("-q",))
    assert (job.returncode, out[:14]) == (0, "True shmguard-"), err


def test_no_guard_is_passed_on(here, mark):
    show = ("env", "-i", "sh", "-c", "echo $SHMGUARD_ONLY_WITNESS $SHMGUARD_PIN")
    assert run_job(here, mark, *show, options=("-q", "--no-guard"))[1] == "1\n"
    assert run_job(here, mark, *show, options=("-q", "--pin", "off"))[1] == "off\n"


ALLOCATOR = "libtbbmalloc_proxy.so.2"


@needs_root
@pytest.mark.parametrize("order", ["{ours}:" + ALLOCATOR, ALLOCATOR + ":{ours}", ALLOCATOR])
def test_beside_another_allocator(mark, order):
    """A training in 1 MB, with our library before and after one that replaces malloc."""
    if not list(pathlib.Path("/usr/lib").glob(f"*/{ALLOCATOR}")):
        pytest.skip(f"needs {ALLOCATOR}")
    load = f"{PYTHON} -W ignore {TRAIN} --steps 8 --batch 32 --side 128"
    with mount_namespace("size=1m") as machine:
        job, out, err = run_job(machine, mark, "sh", "-c", f"LD_PRELOAD={order.format(ours=LIBRARY)} {load}")
    assert job.returncode == 0 and "finished 8 steps" in out, err
    assert "shared tensors were kept out of /dev/shm" in err


def test_behind_a_sanitizer(here, mark):
    """AddressSanitizer must be first, or it ends the program."""
    sanitizer = subprocess.run(["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    if "/" not in sanitizer:
        pytest.skip("gcc has no libasan here")
    command = ("sh", "-c", f"LD_PRELOAD={sanitizer} sh -c 'echo $LD_PRELOAD; grep -c shmguard-preload /proc/self/maps'")
    job, out, err = run_job(here, mark, *command, options=("-q",))
    assert job.returncode == 0 and out.splitlines()[0] == f"{sanitizer}:{LIBRARY}" and int(out.splitlines()[1]) > 0, err


@pytest.mark.parametrize("lost", ["LD_PRELOAD", "SHMGUARD_PIN"])
def test_a_shell_runs_its_command_and_nothing_else(here, mark, tmp_path, lost):
    """system() gets an `export` command in front. Without variables, `export` would print the environment; and a
    variable's value must not be run as a command."""
    program, library = shutil.copy(PROGRAM, tmp_path), shutil.copy(LIBRARY, tmp_path)
    code = f"import os; os.unlink({library!r}); os.environ.pop({lost!r}); os.system('echo hi')"
    done = here.run(program, "run", "-q", "--", PYTHON, "-c", code, env=dict(mark, SHMGUARD_PIN=f"x;touch {tmp_path}/made"))
    assert (done.returncode, done.stdout) == (0, b"hi\n") and not (tmp_path / "made").exists(), done.stderr


def test_an_old_copy_gives_way(here, mark):
    _, out, err = run_job(here, dict(mark, LD_PRELOAD="/gone/libshmguard-preload.so"), PYTHON, "-c", SHOW, options=("-q",))
    assert out.startswith("True shmguard-") and LIBRARY in out and "/gone" not in out, err
    _, out, err = run_job(here, mark, "env", "LD_PRELOAD=/gone/libshmguard-preload.so", PYTHON, "-c", SHOW, options=("-q",))
    assert out.startswith("True shmguard-") and LIBRARY in out and "/gone" not in out, err


def test_switched_off_by_name(here, mark):
    """The process and its children run as without us."""
    show = "grep -c shmguard-preload /proc/self/maps; env | grep -c SHMGUARD_SOCKET="
    _, out, _ = run_job(here, mark, "env", "-i", "SHMGUARD=off", "sh", "-c", show, options=("-q",))
    assert out == "0\n0\n"
    # If the library is preloaded all the same, it does nothing: it has no handlers, and does not restore the
    # environment.
    _, out, _ = run_job(here, mark, "env", "SHMGUARD=off", "sh", "-c", "cat /proc/self/status; env -i env", options=("-q",))
    caught = int(re.search(r"SigCgt:\t(\w+)", out).group(1), 16)
    assert not caught & (1 << (signal.SIGSEGV - 1)) and "LD_PRELOAD" not in out
    code = "import torch; t = torch.zeros(1 << 20).share_memory_(); print('memfd:shmguard' in open('/proc/self/maps').read())"
    by_hand = dict(mark, LD_PRELOAD=LIBRARY)
    for off, expected in (({}, b"True\n"), ({"SHMGUARD": "off"}, b"False\n")):
        done = here.run(PYTHON, *QUIET_PYTHON, "-c", code, env={**{k: v for k, v in by_hand.items() if k != "SHMGUARD"}, **off})
        assert done.stdout == expected, done.stderr


def test_what_cannot_load_it_is_left_alone(here, mark, tmp_path):
    """Our library would crash a program that uses musl's dynamic linker, and one that cannot read it would complain."""
    linker = tmp_path / "ld-musl-x86_64.so.1"
    shutil.copy(pathlib.Path("/lib64/ld-linux-x86-64.so.2").resolve(), linker)
    source = tmp_path / "show.c"
    source.write_text('#include <stdio.h>\n#include <stdlib.h>\n'
                      'int main(void) { const char *list = getenv("LD_PRELOAD"); puts(list && *list ? "set" : "unset"); return 0; }\n')
    subprocess.run(["gcc", f"-Wl,--dynamic-linker={linker}", "-o", tmp_path / "show", source], check=True)
    script = tmp_path / "script"
    script.write_text(f"#!{tmp_path}/show\n")
    script.chmod(0o755)
    show = tmp_path / "show"
    for command in ([show], [script], ["sh", "-c", f"PATH={tmp_path}:$PATH; LD_PRELOAD= exec show"]):
        _, out, _ = run_job(here, mark, "env", "-u", "LD_PRELOAD", *command, options=("-q",))
        assert out == "unset\n", command
    for command in ([show], [script], ["env", show], ["env", "SHMGUARD=off", show],
                    [PYTHON, "-c", f"import subprocess; subprocess.run(['{show}'])"]):
        _, out, _ = run_job(here, mark, *command, options=("-q",))
        assert out == "unset\n", command

    alone = tmp_path / "shmguard"
    shutil.copy(PROGRAM, alone)
    shutil.copy(LIBRARY, tmp_path)
    done = here.run(alone, "run", "-q", "--", "sh", "-c", f"rm {tmp_path}/libshmguard-preload.so; unset LD_PRELOAD; /bin/echo on",
                    env=mark)
    assert (done.stdout, done.stderr) == (b"on\n", b"")


# --- Processes without the guard ----------------------------------------------------------------------------------

LAUNCHER = """
    #include <stdlib.h>
    #include <unistd.h>
    int main(int argc, char **argv)
    {
        char *kept[] = {(char *)"PATH=/usr/bin:/bin", getenv("KEEP"), NULL};
        return argc < 2 || execve(argv[1], argv + 1, kept);
    }
    """
SLEEP = (PYTHON, "-c", "import time; time.sleep(1.4)")


@pytest.fixture(scope="session")
def static_launcher(tmp_path_factory):
    directory = tmp_path_factory.mktemp("launcher")
    (directory / "launch.c").write_text(textwrap.dedent(LAUNCHER))
    subprocess.run(["gcc", "-static", "-o", directory / "launch", directory / "launch.c"], check=True)
    return directory / "launch"


@pytest.mark.parametrize("keep, why, words", [
    ("A=b", "no-preload", "without LD_PRELOAD"),
    ("LD_PRELOAD=libdl.so.2", "other-preload", "with another LD_PRELOAD"),
    (f"LD_PRELOAD={LIBRARY}", "no-socket", "without SHMGUARD_SOCKET"),
    ("SHMGUARD=off", "switched-off", "SHMGUARD=off"),
])
def test_a_static_launcher(here, mark, tmp_path, static_launcher, keep, why, words):
    report = tmp_path / "report.json"
    job, _, err = run_job(here, dict(mark, KEEP=keep), static_launcher, *SLEEP, options=("--report", report))
    guard = json.loads(report.read_text())["guard"]
    assert (guard["idle"], guard["processes"], guard["joined"]) == ("not-loaded", 0, False)
    (process,) = guard["unguarded"]
    assert (process["why"], process["name"], process["uid"]) == (why, "python3", os.getuid())
    text = " ".join(err.split())
    assert f"python3 (pid {process['pid']}) ran without the guard." in text and words in text


def test_nothing_was_shared(here, mark, tmp_path):
    report = tmp_path / "report.json"
    _, _, err = run_job(here, mark, *SLEEP, options=("--report", report))
    guard = json.loads(report.read_text())["guard"]
    assert (guard["idle"], guard["processes"], guard["unguarded"]) == ("no-tensors", 1, [])
    assert "no shared tensors were made" in err and "num_workers > 0" in " ".join(err.split())
    # Nothing is known about a process that ended at once.
    _, _, err = run_job(here, mark, "true")
    assert err == "shmguard: the guard saw no shared tensors\n"


@needs_root
def test_rights_and_users(here, mark, tmp_path, public):
    """A set-user-ID Python, a library that its user cannot read, and a user that only root can serve."""
    report = tmp_path / "report.json"
    python = public / "python3-with-rights"
    shutil.copy(pathlib.Path(PYTHON).resolve(), python)
    os.chown(python, NOBODY, NOBODY)
    python.chmod(0o4755)
    hidden = public / "hidden"
    hidden.mkdir()
    for name in ("shmguard", "libshmguard-preload.so"):
        shutil.copy(public / name, hidden)
    hidden.chmod(0o700)
    root_python = public / "python3-of-root"
    shutil.copy(pathlib.Path(PYTHON).resolve(), root_python)
    root_python.chmod(0o4755)
    try:
        cases = [
            ([PROGRAM], [python, *SLEEP[1:]], "set-user-id", "not-loaded"),
            ([hidden / "shmguard"], [*as_user(NOBODY), *SLEEP], "unreadable-library", "not-loaded"),
        ]
        for program, command, why, idle in cases:
            done = here.run(*program, "run", "--report", report, "--", *command, env=mark)
            guard = json.loads(report.read_text())["guard"]
            assert (guard["idle"], [p["why"] for p in guard["unguarded"]]) == (idle, [why]), done.stderr
        done = here.run(*as_user(NOBODY), public / "shmguard", "run", "--", root_python, *SLEEP[1:], env=mark)
        assert b"Only a shmguard that runs as root serves other users" in b" ".join(done.stderr.split()), done.stderr
    finally:
        python.unlink()
        root_python.unlink()
        shutil.rmtree(hidden)


# --- Another user -------------------------------------------------------------------------------------------------

AS_NOBODY = as_user(NOBODY)
WITHOUT_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace,-sys_admin,-checkpoint_restore,-perfmon")


@pytest.fixture
def roots_run(public, tmp_path):
    """Root's supervisor with a /dev/shm of 1 MB, and the program in a place that every user can reach."""
    with mount_namespace("size=1m,mode=1777") as machine:
        yield machine.within(program=public / os.path.basename(PROGRAM))


@needs_root
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_entrypoint_that_changes_the_user(roots_run, mark, public, tmp_path, strategy):
    report = tmp_path / "report.json"
    entry = public / "entrypoint.sh"
    entry.write_text(f"#!/bin/sh\nexec {' '.join(AS_NOBODY)} \"$@\"\n")
    entry.chmod(0o755)
    load = (PYTHON, *QUIET_PYTHON, public / "train.py", "--steps", "10", "--batch", "32", "--side", "128", "--strategy", strategy)
    job, out, err = run_job(roots_run, dict(mark, TMPDIR="/tmp"), entry, *load, options=("--report", report))
    assert job.returncode == 0 and "finished 10 steps" in out, err
    guard = json.loads(report.read_text())["guard"]
    assert guard["segments_created"] > 0 and guard["fallbacks"] == 0 and guard["unguarded"] == []
    assert (guard["names_served"] > 0) == (strategy == "file_system")


@needs_root
@pytest.mark.parametrize("rights, way, cause", [((), "worker-cut-short", "bus-error-file"), ((), "main", "python-error"),
                                                (WITHOUT_PTRACE, "worker-cut-short", "bus-error-file")])
def test_the_cause_of_another_users_crash(roots_run, mark, public, tmp_path, rights, way, cause):
    """Even where root may not inspect other users' processes, as in a container."""
    report = tmp_path / "report.json"
    shutil.copy(CRASH, public)
    job, _, err = run_job(roots_run.within(*rights), dict(mark, TMPDIR="/tmp"), *AS_NOBODY, PYTHON, *QUIET_PYTHON, public / "crash.py", way,
                          options=("--report", report))
    assert job.returncode == 1
    answer = json.loads(report.read_text())["cause"]
    assert answer["id"] == cause and answer["confidence"] >= (0.6 if rights else 0.8), err


NAMES = """
    import subprocess, sys
    from multiprocessing import resource_tracker, shared_memory

    AS_NOBODY = {as_nobody!r}
    def other(*arguments):
        return subprocess.Popen([*AS_NOBODY, sys.executable, "-W", "ignore", __file__, *arguments], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
    def storage(tensor):
        return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    if sys.argv[1:] in ([], ["tensor"]):
        import torch
        torch.multiprocessing.set_sharing_strategy("file_system")

    if len(sys.argv) == 1:
        ours = shared_memory.SharedMemory(create=True, size=8 << 20)
        ours.buf[:5] = b"hello"
        assert other("open", ours.name).communicate()[0] == "PermissionError"  # as plainly
        assert bytes(ours.buf[:5]) == b"hello"
        theirs = shared_memory.SharedMemory(other("make").communicate()[0])
        assert bytes(theirs.buf[:3]) == b"abc"
        maker = other("tensor")
        manager, name, size = maker.stdout.readline().split()
        Untyped = getattr(torch, "UntypedStorage", None) or torch._UntypedStorage
        opened = Untyped._new_shared_filename_cpu(manager.encode(), name.encode(), int(size))
        assert opened[0] == 7 and opened[int(size) - 1] == 7
        opened[0] = 9
        assert maker.communicate("go")[0] == "9"
        for memory in (ours, theirs):
            memory.close()
            memory.unlink()
        print("as plainly")
    elif sys.argv[1] == "tensor":
        tensor = torch.full((2 << 20,), 7, dtype=torch.uint8).share_memory_()
        manager, name, size = storage(tensor)._share_filename_cpu_()
        print(manager.decode(), name.decode(), size, flush=True)
        sys.stdin.read()
        print(tensor[0].item(), end="")
    else:
        try:
            memory = shared_memory.SharedMemory(*sys.argv[2:3], create=sys.argv[1] == "make", size=100)
        except PermissionError:
            print("PermissionError", end="")
            sys.exit()
        resource_tracker.unregister(memory._name, "shared_memory")
        memory.buf[:3] = b"abc"
        print(memory.name, end="")
    """


@needs_root
def test_names_between_users(roots_run, mark, public):
    script = public / "names.py"
    script.write_text(textwrap.dedent(NAMES).replace("{as_nobody!r}", repr(AS_NOBODY)))
    job, out, err = run_job(roots_run, dict(mark, TMPDIR="/tmp"), PYTHON, *QUIET_PYTHON, script)
    assert (job.returncode, out) == (0, "as plainly\n"), err


@needs_root
def test_a_supervisor_that_may_not_look(roots_run, mark, public):
    """Like root in a container: it serves other users, and says what it cannot find out about them."""
    job, _, err = run_job(roots_run.within(*WITHOUT_PTRACE), mark, *AS_NOBODY, *SLEEP)
    assert job.returncode == 0 and "CAP_SYS_PTRACE" in err


# --- A run within a run -------------------------------------------------------------------------------------------


def nested(*options):
    return (PROGRAM, "run", *options, "--")


def test_the_inner_run_joins(here, mark, tmp_path):
    load = (PYTHON, *QUIET_PYTHON, TRAIN, "--steps", "10", "--batch", "32", "--side", "128")
    inner, outer = tmp_path / "inner.json", tmp_path / "outer.json"
    job, out, err = run_job(here, mark, *nested("--budget", "1G", "--wait", "5", "--report", inner), *load, options=("--report", outer))
    assert job.returncode == 0 and "finished 10 steps" in out, err
    assert err.count("shared tensors were kept out of /dev/shm") == 1 and err.count("joined the outer") == 1
    assert f"joined the outer shmguard run (pid {job.pid})" in err and "--budget and --wait have no effect here" in err
    inner, outer = (json.loads(path.read_text())["guard"] for path in (inner, outer))
    assert (inner["joined"], inner["active"], inner["segments_created"]) == (True, False, 0)
    assert outer["segments_created"] > 0 and outer["joined"] is False and outer["idle"] is None


@pytest.mark.parametrize("options", [(), ("--no-guard",)])
def test_an_inner_run_ends_as_its_command(here, mark, options):
    job, _, err = run_job(here, mark, *nested(*options), "sh", "-c", "exit 7")
    assert job.returncode == 7 and ("--no-guard has no effect here" in err) == bool(options)
    assert run_job(here, mark, *nested("-q"), "sh", "-c", "kill -SEGV $$", options=("-q",))[0].returncode == 128 + signal.SIGSEGV


def test_a_signal_reaches_the_inner_command(here, mark, tmp_path):
    ready = tmp_path / "ready"
    trap = f"trap 'exit 9' TERM; touch {ready}; while :; do sleep 0.1; done"
    job = here.popen(PROGRAM, "run", "-q", "--", *nested("-q"), "sh", "-c", trap, env=mark)
    assert wait_until(ready.exists, 30)
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 9


def test_an_inner_run_degrades_by_the_outer_budget(here, mark, tmp_path):
    inner = tmp_path / "inner.json"
    load = (PYTHON, *QUIET_PYTHON, TRAIN, "--steps", "6", "--side", "128", "--batch", "{batch}")
    job, out, err = run_job(here, mark, *nested("--retry", "1", "--degrade", "batch=64,16", "--report", inner), *load,
                            options=("--budget", "2M"))
    assert job.returncode == 0 and "finished 6 steps" in out, err
    first, second = json.loads(inner.read_text())["attempts"]
    assert first["exit"]["code"] != 0 and second["exit"]["code"] == 0
    assert second["values"] == {"batch": "16"}


@needs_root
def test_a_run_within_a_run_that_has_ended(mark):
    load = (PYTHON, *QUIET_PYTHON, TRAIN, "--steps", "6", "--batch", "32", "--side", "128")
    with mount_namespace("size=1m") as machine:
        job, out, err = run_job(machine, dict(mark, SHMGUARD_SOCKET="shmguard-1-gone"), *load)
    assert job.returncode == 0 and "finished 6 steps" in out, err
    assert "joined" not in err and "kept out of /dev/shm" in err


def test_another_supervisor_within(here, mark, tmp_path):
    """plan --measure has its own guard, so the outer run says where the figures are."""
    report = tmp_path / "report.json"
    load = (PYTHON, *QUIET_PYTHON, TRAIN, "--steps", "400", "--batch", "8", "--side", "64")
    job, _, err = run_job(here, mark, PROGRAM, "plan", "--measure", "--for", "3s", "--", *load, options=("--report", report))
    assert job.returncode == 0, err
    assert json.loads(report.read_text())["guard"]["idle"] == "inner-run"
    assert "another shmguard within this one" in err
