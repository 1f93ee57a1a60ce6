"""What the end-to-end tests share: the real program, real PyTorch at both ends of the range, private /dev/shm mounts."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
TRAIN = PROJECT / "demo" / "train.py"
PROGRAM = os.environ.get("SHMGUARD", str(PROJECT / "build" / "shmguard"))
PYTHONS = {"1.13": "/usr/bin/python3", "2.13": str(PROJECT / ".venv-torch-2.13" / "bin" / "python")}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a private /dev/shm")


def pytest_configure(config):
    if not os.access(PROGRAM, os.X_OK):
        pytest.exit(f"{PROGRAM} is not there: run make build", returncode=2)


def pytest_report_header(config):
    lines = []
    for version, python in PYTHONS.items():
        there = "at " + python if os.access(python, os.X_OK) else "not there, its rounds are SKIPPED"
        lines.append(f"PyTorch {version}: {there}")
    return lines


@pytest.fixture(params=list(PYTHONS))
def python(request):
    """A Python with PyTorch, of each version in turn."""
    path = PYTHONS[request.param]
    if not os.access(path, os.X_OK):
        if request.param == "2.13" and os.environ.get("SHMGUARD_REQUIRE_TORCH_2_13"):
            pytest.fail(f"PyTorch 2.13 is required here and {path} is missing")
        pytest.skip(f"no PyTorch {request.param}: scripts/torch-{request.param} makes one")
    return path


class Machine:
    """Where commands run: here, or in the mount namespace of a process that has its own /dev/shm."""

    def __init__(self, prefix=()):
        self.prefix = list(prefix)

    def popen(self, *command, **kwargs):
        return subprocess.Popen([*self.prefix, *map(str, command)], **kwargs)

    def run(self, *command, **kwargs):
        kwargs.setdefault("timeout", 120)
        return subprocess.run([*self.prefix, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **kwargs)

    def shmguard(self, *arguments, **kwargs):
        return self.run(PROGRAM, *arguments, **kwargs)

    def json(self, *arguments, codes=(0,), **kwargs):
        done = self.shmguard(*arguments, "--json", **kwargs)
        assert done.returncode in codes, done
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def training(self, python, *options, hold=300):
        """demo/train.py, holding its batches. Gives the trainer's pid, and ends the whole tree afterwards."""
        job = self.popen(python, TRAIN, "--hold", hold, *options, stdout=subprocess.PIPE, start_new_session=True)
        try:
            line = job.stdout.readline()
            assert line == b"holding\n", line
            time.sleep(0.7)  # the workers fill their queues
            yield job.pid
        finally:
            end_tree(job)


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


def end_tree(job):
    pids = [*children(job.pid), job.pid]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    job.wait()
    job.stdout.close()
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)


@contextlib.contextmanager
def mount_namespace(options):
    """A process that sleeps in a mount namespace with a tmpfs of its own on /dev/shm (options None: nothing there)."""
    if options is None:
        # /dev is shared with everybody, so it is hidden under one without shm, not changed.
        prepare = "dev=$(mktemp -d) && mount --rbind /dev $dev && " \
                  "mount -t tmpfs tmpfs /dev && for name in null zero full urandom random tty; do " \
                  "touch /dev/$name && mount --bind $dev/$name /dev/$name; done"
    else:
        prepare = f"mount -t tmpfs -o {options} tmpfs /dev/shm"
    holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-ec",
                               f"{prepare} && echo ready && exec sleep 3600"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"ready\n"
        yield Machine(["nsenter", "-t", str(holder.pid), "-m", "--wdns=" + os.getcwd()])
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


@pytest.fixture
def here():
    return Machine()


@pytest.fixture
def small_shm():
    """A machine whose /dev/shm has 64 MiB, as in a container."""
    with mount_namespace("size=64m") as machine:
        yield machine


@pytest.fixture
def private_shm():
    """A machine with a roomy /dev/shm that nobody else uses."""
    with mount_namespace("size=2g") as machine:
        yield machine


@pytest.fixture(scope="session")
def nobody():
    """Runs a command as a user without any rights."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if not setpriv:
        pytest.skip("no setpriv to become an ordinary user with")
    return [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
