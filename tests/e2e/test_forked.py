# SPDX-License-Identifier: Apache-2.0
"""run --forked and --cause-fd: what the plugin for Slurm builds on, with a launcher in Python."""

import pathlib
import sys

LAUNCHER = """
import os, socket, sys
program, mode, *command = sys.argv[1:]
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
told, tells = os.pipe()
if os.fork() == 0:  # reads the cause, when everything else is over
    os.close(tells)
    ours.close(), theirs.close()
    said = os.read(told, 1000)
    os.write(2, b"cause: " + said + b"\\n")
    os._exit(0)
if os.fork() == 0:
    ours.close()
    os.environ["PREPARED"] = "yes"
    if mode == "gone":
        os._exit(5)
    theirs.send(os.getpid().to_bytes(4, sys.byteorder))
    while change := theirs.recv(1 << 16):
        name, equals, value = change.decode().partition("=")
        if equals:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
    os.execvp(command[0], command)
theirs.close()
os.set_inheritable(ours.fileno(), True)
os.set_inheritable(tells, True)
more = {"report": ["--report", "/nonexistent/report.json"], "quiet": ["--quiet"], "refused": ["--no-guard", "--budget=8G"]}.get(mode, [])
os.execv(program, ["shmguard", "run", f"--forked={ours.fileno()}", f"--cause-fd={tells}", *more, "--", *command])
"""
LOOK = 'echo "$PREPARED ${LD_PRELOAD##*/} ${SHMGUARD_SOCKET:+served}"; '


def launch(here, mode, *command):
    return here.run(sys.executable, "-c", LAUNCHER, here.program, mode, *command)


def test_the_command_goes_on_under_the_guard(here):
    done = launch(here, "quiet", "sh", "-c", LOOK + "exit 3")
    assert done.returncode == 3 and done.stdout == b"yes libshmguard-preload.so served\n", done
    assert b"cause: unknown sh exited with code 3." in done.stderr
    done = launch(here, "quiet", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 139 and b"cause: segfault" in done.stderr, done


def test_it_goes_on_plainly_where_we_cannot_watch(here):
    """Its launcher has no way back."""
    done = launch(here, "report", "sh", "-c", LOOK + "exit 3")
    assert done.returncode == 3 and done.stdout == b"yes  \n", done
    assert b"the command goes on without shmguard" in done.stderr
    done = launch(here, "refused", "sh", "-c", LOOK + "exit 3")
    assert done.returncode == 3 and done.stdout == b"yes  \n" and b"--budget" in done.stderr, done


def test_a_signal_reaches_it(here):
    done = launch(here, "quiet", "sh", "-c", "trap 'echo told; exit 7' TERM; kill -TERM $PPID; sleep 5 & wait")
    assert done.returncode == 7 and done.stdout == b"told\n", done


def test_none_waits(here):
    done = launch(here, "gone", "true")
    assert done.returncode == 64 and b"no child of this process waits there" in done.stderr, done
    done = here.shmguard("run", "--forked=0", "--", "true")
    assert done.returncode == 64 and b"no child of this process waits there" in done.stderr, done
    for option in "--retry=1", "--shm=1G":
        done = here.shmguard("run", "--forked=0", option, "--", "true")
        assert done.returncode == 64 and option[:5].encode() in done.stderr, done


def test_nothing_is_left(here):
    done = launch(here, "quiet", "sh", "-c", "sleep 300 & echo $!; exit 0")
    assert done.returncode == 0, done
    assert not pathlib.Path("/proc", done.stdout.decode().strip()).exists()
