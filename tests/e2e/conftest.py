# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the real program, the oldest and newest supported PyTorch, private /dev/shm mounts.

The tests never touch the machine's own /dev/shm: they run in private mount namespaces, and only touch processes and
control groups that they created themselves.
"""

import contextlib
import fcntl
import functools
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
import warnings

import pytest
from _pytest.runner import runtestprotocol

from schema import loads_checked

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
TRAIN = PROJECT / "demo" / "train.py"
PROGRAM = os.environ.get("SHMGUARD", str(PROJECT / "build" / "shmguard"))
BUILD = pathlib.Path(PROGRAM).resolve().parent
ROOTS = BUILD / "tests" / "roots"  # the captured machines of tests/roots, unpacked
UNLINKED = BUILD / "tests" / "unlinked"  # empty libraries for PyTorch: see unlinked.py
# The distribution's PyTorch (1.13 on Debian 12, 2.6 on Debian 13), and the newest one.
PYTHONS = {"system": "/usr/bin/python3", "2.13": str(PROJECT / ".venv-torch-2.13" / "bin" / "python")}
NOBODY = 65534

MIB = 1 << 20
PATIENCE = 300  # seconds that anything may take on a busy machine; what takes longer hangs

for _name in ("LC_ALL", "LC_MESSAGES", "LANG"):  # the tests read English
    if os.environ.get(_name, "").startswith("zh"):
        os.environ[_name] = "C.UTF-8"

SANITIZED = os.access(PROGRAM, os.R_OK) and b"__asan_init" in pathlib.Path(PROGRAM).read_bytes()


def mounts_are_allowed():
    probe = ["unshare", "-m", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
    return os.geteuid() == 0 and subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0


needs_root = pytest.mark.skipif(not mounts_are_allowed(), reason="needs root and the right to mount a private /dev/shm")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it cleans up as after Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signo in (signal.SIGHUP, signal.SIGQUIT):  # background jobs may inherit them as ignored
        signal.signal(signo, signal.SIG_DFL)
    config.addinivalue_line("markers", "slow: starts many processes that load PyTorch afresh")
    config.addinivalue_line("markers", "long: takes minutes; for make soak")
    config.addinivalue_line("markers", "timed: expects something within a certain time; if it fails, it is judged again, alone")
    config.addinivalue_line("markers", "outside: needs the machine's own process numbers; see scripts/e2e")
    os.environ["PYTHONPATH"] = str(HERE / "site")
    os.environ["LD_LIBRARY_PATH"] = str(UNLINKED)
    if not os.access(PROGRAM, os.X_OK):
        pytest.exit(f"{PROGRAM} is not there: run make build", returncode=2)


def pytest_report_header(config):
    lines = [f"program: {PROGRAM}"]
    for version, python in PYTHONS.items():
        there = f"{torch_version(version)} at {python}" if os.access(python, os.X_OK) else "not there, its rounds are SKIPPED"
        lines.append(f"PyTorch, {version}: {there}")
    return lines


def pytest_collection_modifyitems(items):
    """Orphans must be a minute old, so their tests run last, while their files are made first (see test_clean.py). The
    longest tests start early: those that one worker must run one after the other, and those that start many
    processes."""
    items.sort(key=lambda item: (item.path.name == "test_clean.py", not item.get_closest_marker("xdist_group"),
                                 not item.get_closest_marker("slow")))


@contextlib.contextmanager
def turn(alone):
    """Among the tests that run side by side (see scripts/e2e), or alone: then those that come later wait at the door."""
    place = os.environ.get("SHMGUARD_TEST_TURNS")
    if not place:
        yield
        return
    with open(f"{place}/door", "w", encoding="ascii") as door, open(f"{place}/room", "w", encoding="ascii") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    with turn(alone=False):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failed = [report for report in reports if report.failed]
    if failed and item.get_closest_marker("timed"):
        item.warn(pytest.PytestWarning(f"judged again, alone, because it failed beside other tests:\n{failed[0].longreprtext[-1000:]}"))
        item.session._setupstate.teardown_exact(item.session)  # what the module's tests share is made again, too
        with turn(alone=True):
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that waits in vain, for the first line of a job that has ended, for example, fails in the end."""
    def give_up(*_):
        raise TimeoutError(f"not over after {4 * PATIENCE} s")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(0 if item.get_closest_marker("long") else 4 * PATIENCE)
    yield
    signal.alarm(0)


# A sanitizer only checks the supervisor, which does the same for both versions of PyTorch.
@pytest.fixture(params=["system"] if SANITIZED else list(PYTHONS))
def python(request):
    """A Python with PyTorch, once for each version."""
    return python_of(request.param)


@pytest.fixture(params=["system", pytest.param("2.13", marks=pytest.mark.long)])
def one_python(request):
    """The same, for tests where a second version adds little: it runs only in the long rounds."""
    return python_of(request.param)


def cells(names, chosen, *axes, slow=lambda *cell: False):
    """Parameters for all combinations of the axes; the first axis is the version of PyTorch. The chosen combinations
    cover what matters, usually every pair of values. All others run only in the long rounds."""
    assert all(cell in itertools.product(*axes) for cell in chosen)
    made = []
    for cell in itertools.product(*axes):
        marks = [] if cell in chosen else [pytest.mark.long]
        if cell[0] != "system" and SANITIZED:
            continue
        made.append(pytest.param(*cell, marks=marks + [pytest.mark.slow] * slow(*cell)))
    return pytest.mark.parametrize(names, made)


def python_of(version):
    path = PYTHONS[version]
    if not os.access(path, os.X_OK):
        if version == "2.13" and os.environ.get("SHMGUARD_REQUIRE_TORCH_2_13"):
            pytest.fail(f"PyTorch 2.13 is required here and {path} is missing")
        pytest.skip(f"no PyTorch {version}: run scripts/torch-{version}")
    return path


def torch_version(version):
    ask = "import importlib.metadata; print(importlib.metadata.version('torch'))"
    return subprocess.run([PYTHONS[version], "-c", ask], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


@functools.lru_cache(maxsize=None)
def system_has_torchrun():
    probe = "from torch.distributed import TCPStore; TCPStore('127.0.0.1', 0, 1, True)"
    return subprocess.run([PYTHONS["system"], "-c", probe], stderr=subprocess.DEVNULL, check=False).returncode == 0


def skip_without_torchrun(python):
    """Debian 13's PyTorch is built without libuv, which its launcher requires."""
    if python == PYTHONS["system"] and not system_has_torchrun():
        pytest.skip("the launcher of this PyTorch does not work")


class Machine:
    """Where commands run: on this machine, in a mount namespace with its own /dev/shm, in a control group, or as another user."""

    def __init__(self, prefix=(), pid=None, program=PROGRAM):
        self.prefix = list(prefix)
        self.pid = pid or os.getpid()  # a process that has this machine's mounts
        self.program = program

    def within(self, *prefix, program=None):
        """The same machine for commands that are started through `prefix`."""
        return Machine([*self.prefix, *map(str, prefix)], self.pid, program or self.program)

    def alone(self):
        """The same machine without the processes of other jobs, which would be judged too. Only for commands that start none."""
        return self.within("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--")

    @property
    def shm(self):
        """The machine's /dev/shm, seen from outside."""
        return pathlib.Path(f"/proc/{self.pid}/root/dev/shm")

    @property
    def shm_used(self):
        fs = os.statvfs(self.shm)
        return (fs.f_blocks - fs.f_bfree) * fs.f_frsize

    def popen(self, *command, **kwargs):
        return subprocess.Popen([*self.prefix, *map(str, command)], **kwargs)

    def run(self, *command, **kwargs):
        kwargs.setdefault("timeout", 2 * PATIENCE)
        kwargs.setdefault("stdout", subprocess.PIPE)
        kwargs.setdefault("stderr", subprocess.PIPE)
        if "input" not in kwargs:
            kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([*self.prefix, *map(str, command)], check=False, **kwargs)

    def run_plainly(self, *command, **kwargs):
        """Runs a command without us that is expected to die. When a batch is lost, PyTorch sometimes hangs instead; it
        is killed then."""
        return self.run("timeout", "--kill-after=5", "60", *command, **kwargs)

    def shmguard(self, *arguments, **kwargs):
        return self.run(self.program, *arguments, **kwargs)

    def json(self, command, *arguments, codes=None, **kwargs):
        """The command's JSON answer, checked against the schema. codes None: any exit code that comes with an answer."""
        done = self.shmguard(command, *arguments, "--json", **kwargs)
        assert done.returncode in (codes or (0, 1, 2, 77)), done
        assert done.stderr == b"" or done.returncode == 77, done
        return loads_checked(command, done)

    def doctor(self, *arguments):
        """The answer of doctor, with its findings by id."""
        answer = self.json("doctor", *arguments)
        answer["by_id"] = {finding["id"]: finding for finding in answer["findings"]}
        return answer

    @contextlib.contextmanager
    def training(self, python, *options, hold=300, workers=2, batch=16, side=256, steps=50, train=TRAIN, settle=True):
        """Runs demo/train.py, which holds its first two batches while the workers fill their queues. Yields the trainer's pid."""
        numbers = {"--hold": hold, "--workers": workers, "--batch": batch, "--side": side, "--steps": steps}
        with scratch_directory() as scratch:
            job = self.popen(python, train, *(word for pair in numbers.items() for word in pair), *options,
                             stdout=subprocess.PIPE, start_new_session=True, env={**os.environ, "TMPDIR": scratch})
            try:
                line = job.stdout.readline()
                assert line == b"holding\n", line
                if settle:
                    bytes_at_rest = min(steps, 2 * workers + 2) * batch * 3 * side * side
                    its_machine = Machine(pid=job.pid)
                    wait_until(lambda: its_machine.shm_used >= bytes_at_rest, "the workers fill their queues")
                    wait_until(lambda: is_at_rest([job.pid, *children(job.pid)]), "the last batch is in its queue")
                yield job.pid
            finally:
                end_tree(job)


@contextlib.contextmanager
def scratch_directory():
    """A directory for the sockets of processes that will be killed and cannot remove them."""
    directory = tempfile.mkdtemp(prefix="shmguard-e2e-")
    try:
        os.chmod(directory, 0o1777)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def open_to_all(directory):
    """Lets every user enter the directory: those that pytest makes belong to root alone."""
    os.chmod(directory, 0o777)
    top = pathlib.Path(tempfile.gettempdir())
    for parent in directory.relative_to(top).parents[:-1]:
        os.chmod(top / parent, 0o755)


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"timed out after {PATIENCE} s: {what}"
        time.sleep(0.02)


def free_port():
    """A port that is free right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_sentinel(pid):
    """Whether this is the process that ends the job when its supervisor is killed."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text() == "guard-sentinel\n"
    except OSError:
        return False


def children(pid):
    """All processes below this one, except the sentinel of a supervisor, which is not part of its job."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [] if is_sentinel(child) else [child, *children(child)]
    return found


def end_tree(job):
    """Kills everything that the job has started, and waits until all of it is gone."""
    # torch_shm_manager leaves the process tree and the session when its parent exits, so it must be found before.
    pids = [*children(job.pid), job.pid]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    job.wait()
    if job.stdout:
        job.stdout.close()
    wait_until(lambda: all(map(has_ended, pids)), "killed processes end")


def is_at_rest(pids):
    """Whether all threads sleep for a tenth of a second."""
    def look():
        status = [path.read_text() for pid in pids for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
        return [re.findall(r"^(?:State|\w+_ctxt_switches):\t(\w+)", text, re.M) for text in status]

    before = look()
    time.sleep(0.1)
    return look() == before and all(state == "S" for state, *_ in before)


def has_ended(pid):
    """Gone, or a zombie that its parent has not reaped yet: it holds nothing any more."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


@contextlib.contextmanager
def prepared_namespace(prepare):
    """A mount namespace in which the shell commands `prepare` have run. A sleeping process keeps it alive."""
    holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-ec",
                               f"{prepare}\necho ready\nexec sleep 3600"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"ready\n"
        yield Machine(["nsenter", "-t", str(holder.pid), "-m", "--wdns=/"], holder.pid)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def mount_namespace(options):
    """A machine with its own tmpfs on /dev/shm."""
    return prepared_namespace(f"mount -t tmpfs -o {options} tmpfs /dev/shm")


def memory_groups():
    """Where memory groups can be created: (directory, name of the limit's file, version)."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        kind, _, options = right.split(" ", 2)
        directory = pathlib.Path(left.split()[4])
        if kind == "cgroup" and "memory" in options.split(","):
            return directory, "memory.limit_in_bytes", 1
        if kind == "cgroup2" and "memory" in (directory / "cgroup.subtree_control").read_text().split():
            return directory, "memory.max", 2
    raise FileNotFoundError("no hierarchy of memory groups is mounted")


@contextlib.contextmanager
def control_group(machine, limit=None, parent=None):
    """Creates a memory group. Yields the machine as seen from inside the group, and the group's directory. Without a
    limit the group only counts; if it cannot be created, the directory is None."""
    try:
        top, limit_file, version = memory_groups()
        directory = (parent or top) / f"shmguard-e2e-{uuid.uuid4().hex[:8]}"
        directory.mkdir()
    except OSError as error:
        if limit:
            pytest.skip(f"no memory control group can be made here: {error}")
        warnings.warn(f"no memory control group can be made here, so it is NOT checked whether memory is left: {error}", stacklevel=2)
        yield machine, None
        return
    try:
        if limit:
            (directory / limit_file).write_text(str(limit))
            if version == 2:
                (directory / "memory.swap.max").write_text("0")
        yield machine.within("sh", "-c", 'echo $$ >"$0" && exec "$@"', directory / "cgroup.procs"), directory
    finally:
        # Processes that have just been killed take a moment to leave the group.
        wait_until(lambda: remove_group(directory), f"rmdir {directory}")


def remove_group(directory):
    try:
        directory.rmdir()
    except OSError:
        return False
    return True


@pytest.fixture
def here():
    return Machine()


@pytest.fixture
def small_shm():
    """A machine whose /dev/shm has 64 MiB, like a container's."""
    with mount_namespace("size=64m") as machine:
        yield machine


@pytest.fixture
def private_shm():
    """A machine with a large /dev/shm that no one else uses."""
    with mount_namespace("size=2g") as machine:
        yield machine


def as_user(uid, *more):
    """A prefix that runs a command as an ordinary user."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *(more or ["--inh-caps=-all"])]


@pytest.fixture(scope="session")
def public():
    """The program and the training in a place that every user can reach, as after an installation."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="shmguard-e2e-"))
    try:
        directory.chmod(0o755)
        for source in [PROGRAM, TRAIN, pathlib.Path(PROGRAM).with_name("libshmguard-preload.so")]:
            if os.path.exists(source):
                shutil.copy(source, directory)
                (directory / os.path.basename(source)).chmod(0o755)
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="session", autouse=True)
def leftovers(request, public):
    """What test_clean.py removes. Made before all other tests, so that it is old enough when it is needed."""
    if not mounts_are_allowed() or all(item.path.name != "test_clean.py" for item in request.session.items):
        yield None
        return
    from leftovers import Leftovers
    with Leftovers(public) as made:
        yield made


@pytest.fixture(scope="session")
def nobody():
    """A prefix that runs a command as a user without any rights. Empty if we are such a user."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv to become an ordinary user")
    return as_user(NOBODY)


@pytest.fixture(scope="session")
def ordinary(nobody, public):
    """Turns a machine into one that is used by an ordinary user."""
    def become(machine, uid=NOBODY):
        return machine.within(*(as_user(uid) if nobody else []), program=public / os.path.basename(PROGRAM))

    return become


@contextlib.contextmanager
def holder(machine, program, *arguments, **kwargs):
    """Runs a Python program that prints "ready" and then keeps what it has until the end. Yields its pid."""
    job = machine.popen(PYTHONS["system"], "-c", program + "\nprint('ready', flush=True)\nimport sys; sys.stdin.read()",
                        *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **kwargs)
    try:
        assert job.stdout.readline() == b"ready\n"
        yield job.pid
    finally:
        job.kill()
        job.communicate()
