# SPDX-License-Identifier: Apache-2.0
"""The captured machines of tests/roots: what the program must say about each, whichever user asks and wherever it runs."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import tarfile
import tempfile

import pytest

from conftest import MIB, PROJECT, ROOTS, TRAIN, Machine, children, holder, needs_root, python_of, scratch_directory

SOURCES = PROJECT / "tests" / "roots"
CAPTURE = PROJECT / "scripts" / "capture-root"
GIB = 1 << 30


def load_make():
    spec = importlib.util.spec_from_file_location("make_roots", SOURCES / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load_make()

# Depends on the build, not on the tree: whether there is a preload library.
OF_THE_BUILD = {"guard-unavailable"}

# shm: size and used. roles: how many of each. findings: all except those that depend on the build, by severity. fix:
# what the first finding suggests first to someone who must change something outside of the training.
TREES = {
    "bare": {
        "kind": "bare", "can_remount": True, "cgroup_limit": None, "shm": (64 * MIB, 55730176),
        "roles": {"trainer": 1, "worker": 2}, "start": "fork",
        "verdict": "warning",
        "findings": {"shm-nearly-full": "warning", "shm-orphans": "warning", "shm-need": "info"},
        "fix": ("root", "mount -o remount,size=512m /dev/shm"),
    },
    "bare-user": {
        "kind": "bare", "can_remount": False, "cgroup_limit": None, "shm": (64 * MIB, 52514816),
        "roles": {"trainer": 1, "worker": 3}, "start": "spawn",
        "verdict": "critical",
        "findings": {"shm-too-small": "critical", "remove-ipc": "warning", "workers-exceed-cpus": "warning",
                     "shm-orphans": "info"},
        "fix": ("root", "sudo mount -o remount,size=512m /dev/shm"),
    },
    "cgroup-v1": {
        "kind": "bare", "can_remount": True, "cgroup_limit": GIB, "shm": (2 * GIB, 75603968),
        "roles": {"trainer": 1, "worker": 2, "manager": 2}, "start": "forkserver",
        "verdict": "warning",
        "findings": {"oom-recent": "warning", "spawn-copies": "warning", "shm-need": "info"},
        "fix": None,  # only the creator of the group knows how to change it
    },
    "cgroup-v2": {
        "kind": "bare", "can_remount": True, "cgroup_limit": GIB, "shm": (2 * GIB, 75603968),
        "roles": {"trainer": 1, "worker": 2, "manager": 2}, "start": "forkserver",
        "verdict": "warning",
        "findings": {"oom-recent": "warning", "spawn-copies": "warning", "shm-need": "info"},
        "fix": ("root", "systemctl set-property --runtime jobs.slice MemoryMax=2048M"),
    },
    "docker": {
        "kind": "docker", "can_remount": False, "cgroup_limit": 4 * GIB, "shm": (64 * MIB, 48271360),
        "roles": {"trainer": 1, "worker": 4}, "start": "fork",
        "verdict": "critical",
        "findings": {"shm-too-small": "critical", "workers-exceed-cpus": "warning"},
        "fix": ("restart", "docker run --shm-size=512m IMAGE COMMAND"),
    },
    "docker-cgroup-v2": {
        "kind": "docker", "can_remount": False, "cgroup_limit": 4 * GIB, "shm": (64 * MIB, 48271360),
        "roles": {"trainer": 1, "worker": 4}, "start": "fork",
        "verdict": "critical",
        "findings": {"shm-too-small": "critical", "workers-exceed-cpus": "warning"},
        "fix": ("restart", "docker run --shm-size=512m IMAGE COMMAND"),
    },
    "kubernetes": {
        "kind": "kubernetes", "can_remount": False, "cgroup_limit": 2 * GIB, "shm": (256 * MIB, 157388800),
        "roles": {"trainer": 1, "worker": 4}, "start": "fork",
        "verdict": "critical",
        "findings": {"shm-too-small": "critical", "workers-exceed-cpus": "warning", "shm-of-pod": "info"},
        "fix": ("restart", re.compile(r"(?s)spec:.*mountPath: /dev/shm.*emptyDir:\n +medium: Memory\n"
                                      r" +sizeLimit: 1Gi")),
    },
    "lxc": {
        "kind": "lxc", "can_remount": True, "cgroup_limit": 4 * GIB, "shm": (256 * MIB, 168386560),
        "roles": {"trainer": 1, "worker": 2, "manager": 2}, "start": "fork",
        "verdict": "warning",
        "findings": {"shm-too-small": "warning"},
        "fix": ("root", "mount -o remount,nosuid,nodev,size=512m tmpfs /dev/shm"),
    },
    "podman": {
        "kind": "podman", "can_remount": False, "cgroup_limit": None, "shm": (64000 << 10, 31522816),
        "roles": {}, "start": None,
        "verdict": "critical",
        "findings": {"shm-too-small": "critical"},
        "fix": ("restart", "podman run --shm-size=6g IMAGE COMMAND"),
    },
    "slurm": {
        "kind": "bare", "slurm": True, "can_remount": False, "cgroup_limit": 380 * MIB, "shm": (12638257152, 125906944),
        "roles": {"trainer": 1, "worker": 2}, "start": "fork",
        "verdict": "warning",
        "findings": {"cgroup-near-limit": "warning", "shm-share-of-memory": "warning", "shm-need": "info"},
        "fix": ("restart", "sbatch --mem=760M job.sh"),
    },
}

def run(*arguments, **kwargs):
    return Machine().shmguard(*arguments, timeout=60, **kwargs)


def doctor(tree, *options):
    return Machine().json("doctor", "--root", tree, *options)


def ps(tree, *options):
    return Machine().json("ps", "--root", tree, *options)


def roles(report):
    found = {}
    for process in report["processes"]:
        found.setdefault(process["role"], []).append(process)
    return found


def findings(report):
    return {finding["id"]: finding for finding in report["findings"] if finding["id"] not in OF_THE_BUILD}


def outside_fixes(finding):
    return [(fix["needs"], fix["command"]) for fix in finding["fixes"] if fix["needs"] != "nothing"]


@pytest.mark.parametrize("name", TREES)
def test_environment_memory_and_limits(name):
    wanted, report = TREES[name], doctor(ROOTS / name)
    environment = report["environment"]
    assert environment["kind"] == wanted["kind"]
    assert environment["slurm"] == wanted.get("slurm", False)
    assert environment["can_remount"] == wanted["can_remount"]
    size, used = wanted["shm"]
    assert (report["shm"]["size"], report["shm"]["used"], report["shm"]["available"]) == (size, used, size - used)
    assert report["shm"]["path"] == "/dev/shm" and report["shm"]["inodes_free"] > 0
    assert report["memory"]["cgroup_limit"] == wanted["cgroup_limit"]
    assert report["memory"]["cgroup_used"] > 0
    assert report["memory"]["total"] > report["memory"]["available"] > 0
    limit = 1024 if name == "kubernetes" else 20000
    assert report["limits"] == {"open_files_soft": limit, "open_files_hard": limit, "max_map_count": 65530}


@pytest.mark.parametrize("name", TREES)
def test_findings_and_the_remedy_of_the_place(name):
    wanted, report = TREES[name], doctor(ROOTS / name)
    found = findings(report)
    assert report["verdict"] == wanted["verdict"]
    assert {finding["id"]: finding["severity"] for finding in found.values()} == wanted["findings"]
    offers = outside_fixes(next(iter(found.values())))
    if wanted["fix"] is None:
        assert offers == []
    else:
        needs, command = wanted["fix"]
        assert offers[0][0] == needs
        assert command.fullmatch(offers[0][1]) if isinstance(command, re.Pattern) else command == offers[0][1]
    assert all("100%" not in fix["what"] for finding in found.values() for fix in finding["fixes"])


@pytest.mark.parametrize("name", TREES)
def test_roles_jobs_and_what_they_hold(name):
    wanted, report = TREES[name], ps(ROOTS / name)
    found = roles(report)
    assert {role: len(processes) for role, processes in found.items() if role != "other"} == wanted["roles"]
    for trainer in found.get("trainer", []):
        family = {process["pid"] for process in report["processes"] if process["job"] == trainer["pid"]}
        assert {worker["pid"] for worker in found["worker"]} <= family
        assert trainer["shm"] > 8 * MIB and trainer["pss"] > trainer["uss"] > 0
    assert {worker["start_method"] for worker in found.get("worker", [])} == ({wanted["start"]} - {None})

    pids = {process["pid"] for process in report["processes"]}
    torch = [segment for segment in report["segments"] if segment["kind"] == "torch"]
    assert torch and all(set(segment["holders"]) <= pids for segment in report["segments"])
    assert all(segment["orphan"] == "no" for segment in report["segments"] if segment["holders"])
    assert report["attributed"] + report["unattributed"] == wanted["shm"][1]


def segments(name):
    return {segment["name"]: segment for segment in ps(ROOTS / name)["segments"]}


def unheld(name):
    return {name: (segment["kind"], segment["orphan"]) for name, segment in segments(name).items()
            if not segment["holders"]}


def test_leftovers_on_a_machine_seen_by_root():
    assert unheld("bare") == {"torch_2217_1804289383_0": ("torch", "yes"), "nccl-kXw3Qz": ("nccl", "yes"),
                              "psm_5ab9e0c1": ("python", "yes"), "sem.lock": ("semaphore", "unknown"),
                              "notes.txt": ("other", "yes")}
    batches = [segment for segment in segments("bare").values() if segment["size"] == 32 * 3 * 256 * 256]
    assert len(batches) == 6 and all(segment["deleted"] and segment["backing"] == "shm" for segment in batches)


def test_leftovers_seen_by_a_user_need_the_kernels_word():
    """The user cannot inspect pid 1, but a lease has shown that no process has the file open."""
    assert unheld("bare-user") == {"torch_2217_1804289383_0": ("torch", "yes")}
    assert ps(ROOTS / "bare-user")["unreadable_processes"] == 1


def test_leftovers_without_the_kernels_word_stay_unknown(tmp_path):
    tree = make.Tree(ROOTS / "bare-user")
    tree.edit_lines(b".capture/open", lambda line: None if b"torch_2217" in line else line)
    tree.write(tmp_path / "tree")
    found = {segment["name"]: segment["orphan"] for segment in ps(tmp_path / "tree")["segments"]}
    assert found["torch_2217_1804289383_0"] == "unknown"


def test_leftovers_in_a_container_cannot_be_told():
    assert unheld("podman") == {"torch_17_2215938473_0": ("torch", "unknown"), "nccl-Ab12Cd": ("nccl", "unknown"),
                                "psm_1f0c2d9e": ("python", "unknown")}


def test_a_living_manager_may_still_hand_out_its_files():
    found = unheld("cgroup-v1")
    assert len(found) == 6 and set(found.values()) == {("torch", "unknown")}
    assert all("torch_shm_manager" in segment["orphan_why"] for name, segment in segments("cgroup-v1").items()
               if name in found)


def test_the_kernel_log_names_the_victim_and_the_group():
    for name, group in (("cgroup-v1", "/jobs"), ("cgroup-v2", "/jobs.slice")):
        finding = findings(doctor(ROOTS / name))["oom-recent"]
        assert re.match(r"The kernel killed python3 \(pid \d+\) 7\d s ago", finding["title"])
        assert f"the control group {group} was at its limit" in finding["evidence"]


def test_the_limit_that_counts_is_not_the_nearest():
    """Version 2: no limit at the leaf, 2 GiB above it, 1 GiB at the top, where the CPU quota is set as well."""
    leaf = ROOTS / "cgroup-v2/sys/fs/cgroup/jobs.slice/jobs-gpu.slice/train.scope/memory.max"
    assert leaf.read_text() == "max\n"
    report = doctor(ROOTS / "cgroup-v2")
    assert report["memory"]["cgroup_limit"] == GIB
    assert report["memory"]["cgroup_used"] == int((leaf.parents[2] / "memory.current").read_text())
    text = run("doctor", "--root", ROOTS / "cgroup-v2").stdout.decode()
    assert "CPUs 1.5" in text


def test_a_job_is_judged_by_its_own_group():
    """Slurm: the tree was captured in a second step of the job that is examined."""
    trainer = roles(ps(ROOTS / "slurm"))["trainer"][0]["pid"]
    report = doctor(ROOTS / "slurm", "--pid", str(trainer))
    assert report["memory"]["cgroup_limit"] == 380 * MIB
    evidence = findings(report)["cgroup-near-limit"]["evidence"]
    assert re.search(r"The limit is that of /slurm/uid_1000/job_\d+\.", evidence)


@pytest.mark.parametrize("name", [name for name in TREES if TREES[name]["roles"]])
def test_one_job(name):
    everything = ps(ROOTS / name)
    worker = roles(everything)["worker"][-1]
    report = ps(ROOTS / name, "--pid", str(worker["pid"]))
    job = [process for process in everything["processes"] if process["job"] == worker["job"]]
    assert report["processes"] == job
    assert findings(doctor(ROOTS / name, "--pid", str(worker["pid"])))


def test_a_pid_that_is_not_in_the_tree():
    done = run("doctor", "--root", ROOTS / "docker", "--pid", os.getpid())
    assert done.returncode == 65 and done.stdout == b"" and done.stderr.count(b"\n") == 1


# A tree answers for the machine that it was captured on, whoever examines it and wherever.

def answers(machine, tree, env=None):
    done = [machine.shmguard(*command, "--root", tree, "--json", env=env)
            for command in (("ps",), ("ps", "--all"), ("doctor",))]
    return [(each.returncode, each.stdout, each.stderr) for each in done]


@pytest.fixture(scope="module")
def trees():
    """Copies that every user may read."""
    with tempfile.TemporaryDirectory(prefix="shmguard-roots-") as directory:
        os.chmod(directory, 0o755)
        for name in TREES:
            make.Tree(ROOTS / name).write(pathlib.Path(directory) / name)
        subprocess.run(["chmod", "-R", "a+rX", directory], check=True)
        yield pathlib.Path(directory)


ELSEWHERE = {"TZ": "Asia/Tokyo", "LANG": "de_DE.UTF-8", "LC_ALL": "zh_CN.GB18030", "SLURM_JOB_ID": "1",
             "KUBERNETES_SERVICE_HOST": "10.0.0.1", "container": "lxc", "OMP_NUM_THREADS": "64", "HOME": "/nonexistent"}


@pytest.mark.parametrize("name", TREES)
def test_the_same_a_second_time_and_in_another_environment(here, trees, name):
    first = answers(here, trees / name)
    assert answers(here, trees / name) == first
    assert answers(here, trees / name, env={**os.environ, **ELSEWHERE}) == first
    assert answers(here, trees / name, env={"PATH": "/usr/bin:/bin"}) == first
    limited = here.within("prlimit", "--nofile=32:32", "--nproc=64:64", "taskset", "-c", min(os.sched_getaffinity(0)))
    assert answers(limited, trees / name) == first


@needs_root
@pytest.mark.parametrize("name", TREES)
def test_the_same_as_another_user_and_in_other_namespaces(here, ordinary, trees, name):
    first = answers(here, trees / name)
    assert answers(ordinary(here), trees / name) == first
    apart = here.within("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--ipc", "--net")
    assert answers(apart, trees / name) == first


# The trees themselves

@pytest.mark.parametrize("archive", sorted(SOURCES.glob("*.tar.gz")), ids=lambda path: path.name)
def test_an_archive_tells_nothing_but_the_tree(archive):
    """Not when, by whom or in which order it was packed."""
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert {(member.uid, member.gid, member.uname, member.gname, member.mtime) for member in members} == {(0, 0, "", "", 0)}


def test_every_tree_is_told_of():
    names = {path.name for path in ROOTS.iterdir() if (path / "proc").is_dir()}
    assert names == set(TREES) | {"hostile"}
    told = (SOURCES / "README.md").read_text()
    assert all(f"`{name}`" in told for name in names)


# Broken and hostile trees

COMMANDS = [("ps",), ("ps", "--all"), ("ps", "--segments"), ("ps", "--json", "--all"), ("doctor",), ("doctor", "--json"),
            ("ps", "--pid", "1"), ("doctor", "--pid", "9", "--json")]
SANE = {"ps": {0, 65, 77}, "doctor": {0, 1, 2, 65, 77}}
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def assert_sane(tree, *command):
    """The command answers in time, in complete lines without control characters, or says in one line why it cannot."""
    done = run(*command, "--root", tree)
    assert done.returncode in SANE[command[0]], (command, done)
    text = done.stdout.decode()  # valid UTF-8, whatever the names are
    errors = done.stderr.decode()
    assert not CONTROL.search(text) and not CONTROL.search(errors), (command, done)
    assert errors.count("\n") == (1 if done.returncode in (65, 77) else 0), (command, done)
    if done.returncode in (65, 77):
        assert text == ""
    elif "--json" in command:
        report = json.loads(text)
        # Names have one line; commands to paste may have several.
        for each in strings({key: report[key] for key in ("processes", "segments") if key in report}):
            assert not CONTROL.search(each) and "\n" not in each
        return report
    return None


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hostile") / "tree"
    make.Tree(ROOTS / "hostile").write(directory)
    make.add_unkeepable(directory)
    return directory


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_hostile_trees_are_survived(hostile, command):
    assert_sane(ROOTS / "hostile", *command)
    assert_sane(hostile, *command)


def test_what_is_whole_in_a_hostile_tree_is_told(hostile):
    report = assert_sane(hostile, "ps", "--all", "--json")
    processes = {process["pid"]: process for process in report["processes"]}
    assert processes[1]["role"] == "trainer" and processes[1]["command"].startswith("python \\x1b]0;owned\\x07")
    assert processes[11]["fds"] is None and report["unreadable_processes"] >= 1
    assert not {0, 5, 7, 12} & set(processes)
    assert {process["ppid"] for process in report["processes"]} <= {0, 1, 9, 10, 11}
    names = {segment["name"]: segment for segment in report["segments"]}
    for name in ("a b (c) (deleted)", "torch_1_2_3\\nnccl-x", "sem.\\x1b[2J", "\\xff\\xfe\\x01"):
        assert names[name]["holders"] == [] and names[name]["orphan"] != "yes"
    assert names["torch_1_2_3\\nnccl-x"]["kind"] == "other" and names["\\xff\\xfe\\x01"]["kind"] == "other"
    held = next(segment for segment in report["segments"] if segment["inode"] == 23)
    assert held["allocated"] == 18816 * 512 and 1 in held["holders"]


def test_a_hostile_tree_is_no_window_to_the_machine_at_hand(hostile):
    """Links to /proc/1, /run and /dev/zero stay inside the tree, and times do not come from a clock that the tree does not have."""
    report = assert_sane(hostile, "doctor", "--json")
    assert report["environment"]["kind"] == "docker" and report["environment"]["slurm"] is False
    assert report["memory"]["total"] == 16384000 << 10 and report["memory"]["available"] is None
    assert report["limits"]["max_map_count"] is None
    assert "at an unknown time" in findings(report)["oom-recent"]["title"]
    live = pathlib.Path("/proc/1/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    shown = {process["command"].split(" ")[0] for process in
             assert_sane(hostile, "ps", "--all", "--json")["processes"]}
    assert live in ("python", "python3") or live not in shown


def truncated(path):
    data = path.read_bytes()
    path.write_bytes(data[:len(data) // 2])


def emptied(path):
    path.write_bytes(b"")


def garbled(path):
    path.write_bytes(make.JUNK)


def swollen(path):
    path.write_bytes(re.sub(rb"\d+", make.LONG, path.read_bytes()))


def gone(path):
    path.unlink()


def a_directory(path):
    path.unlink()
    path.mkdir()


def a_fifo(path):
    path.unlink()
    os.mkfifo(path)


def a_loop(path):
    path.unlink()
    path.symlink_to(path.name)


DAMAGES = [truncated, emptied, garbled, swollen, gone, a_directory, a_fifo, a_loop]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_any_one_file_may_be_damaged(tmp_path, damage):
    """Damages each file of the docker tree in turn: those of the machine, of the trainer and of the capturing process."""
    tree = tmp_path / "tree"
    make.Tree(ROOTS / "docker").write(tree)
    own = os.readlink(tree / "proc/self")
    files = [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]
    files = [path for path in files if "self" not in path.parts and
             not re.match(rf"proc/(?!1/|{own}/)\d+/", str(path.relative_to(tree)))]
    assert len(files) > 40
    for path in files:
        whole = path.read_bytes()
        damage(path)
        try:
            for command in (("ps", "--all", "--json"), ("doctor",)):
                assert_sane(tree, *command)
        except AssertionError as error:
            raise AssertionError(f"{path.relative_to(tree)}: {error}") from error
        finally:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
            path.write_bytes(whole)


@pytest.mark.parametrize("text", [b"", b"MemTotal:\n", make.JUNK], ids=["empty", "no number", "junk"])
def test_a_tree_without_memory_is_named_and_the_remedy_told(tmp_path, text):
    tree = make.Tree(ROOTS / "docker")
    tree.files[b"proc/meminfo"] = text
    tree.write(tmp_path / "my tree")
    for command in ("ps", "doctor"):
        done = run(command, "--root", tmp_path / "my tree")
        assert done.returncode == 65 and done.stdout == b""
        assert str(tmp_path / "my tree") in done.stderr.decode() and b"capture-root" in done.stderr


@needs_root
@pytest.mark.parametrize("closed", ["proc", "proc/meminfo"])
def test_a_tree_that_may_not_be_read(here, ordinary, closed):
    with scratch_directory() as scratch:
        make.Tree(ROOTS / "docker").write(pathlib.Path(scratch) / "tree")
        os.chmod(pathlib.Path(scratch) / "tree" / closed, 0)
        for command in ("ps", "doctor"):
            done = ordinary(here).shmguard(command, "--root", f"{scratch}/tree")
            assert done.returncode == 77 and done.stdout == b"", done
            assert f"{scratch}/tree" in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_processes_vanish_while_they_are_looked_at(tmp_path):
    """Any file of a process may be the first one to disappear."""
    names = ["stat", "status", "cmdline", "maps", "limits", "smaps_rollup", "cgroup", "fd"]
    for name in names:
        tree = make.Tree(ROOTS / "docker")
        for pid in (9, 10, 11, 12):
            tree.remove(b"proc/%d/%s" % (pid, name.encode()))
        tree.write(tmp_path / name)
        report = assert_sane(tmp_path / name, "ps", "--all", "--json")
        assert_sane(tmp_path / name, "doctor")
        pids = {process["pid"] for process in report["processes"]}
        assert 1 in pids and ({9, 10, 11, 12} & pids == set()) == (name in ("stat", "status")), name


# A tree gives the same answers as the machine that it was captured on.

def capture(machine, directory, *options):
    done = machine.run("/usr/bin/python3", CAPTURE, *options, directory / "tree")
    assert done.returncode == 0, done


def assert_alike(live, replayed):
    """Sizes change slightly between two looks. PSS and USS depend on how many other Python processes share a page,
    including the one that captures, so these must only be known in both or in neither."""
    assert live.keys() == replayed.keys()
    for key, value in live.items():
        if key in ("pss", "uss"):
            assert (replayed[key] is None) == (value is None), key
        elif key in ("rss", "rss_shmem"):
            assert replayed[key] == pytest.approx(value, rel=0.02, abs=2 * MIB), key
        else:
            assert replayed[key] == value, key
    if replayed["pss"] is not None:
        assert 0 < replayed["uss"] <= replayed["pss"] <= replayed["rss"]


@needs_root
@pytest.mark.parametrize("version, method, strategy", [("system", "spawn", "file_system"), ("system", "forkserver", "file_descriptor"),
                                                       ("system", "fork", "file_descriptor"), ("2.13", "fork", "file_descriptor")])
def test_a_captured_tree_answers_as_the_machine(small_shm, ordinary, public, version, method, strategy):
    """For root, and for the owner of the training, who may inspect only their own processes."""
    python = python_of(version)
    user = ordinary(small_shm)
    if user.run("sh", "-c", f"exec '{python}' -c pass").returncode != 0:
        user = small_shm
    user.run("dd", "if=/dev/zero", "of=/dev/shm/nccl-Left12", "bs=1M", "count=2")
    user.run("touch", "/dev/shm/left behind\n(x)")
    with user.training(python, "--start-method", method, "--strategy", strategy, train=public / TRAIN.name) as trainer:
        job = {trainer, *children(trainer)}
        for machine in {user, small_shm}:
            with scratch_directory() as scratch:
                tree = pathlib.Path(scratch) / "tree"
                capture(machine, pathlib.Path(scratch), "--arguments")
                assert_same_answers(machine, tree, trainer, job, strategy)


def assert_same_answers(machine, tree, trainer, job, strategy):
    (everything, one, judged), (everything_then, one_then, judged_then) = [
        (machine.json("ps", *root), machine.json("ps", "--pid", trainer, *root), machine.json("doctor", "--pid", trainer, *root))
        for root in ((), ("--root", tree))]
    assert {process["pid"] for process in one["processes"]} <= job
    assert [process["role"] for process in one["processes"]].count("worker") == 2
    assert ("manager" in roles(one)) == (strategy == "file_system")
    assert len(one["processes"]) == len(one_then["processes"])
    for process, process_then in zip(one["processes"], one_then["processes"]):
        assert_alike(process, process_then)

    # All segments of the private mount; elsewhere, other trainings come and go.
    device = next(segment["device"] for segment in everything["segments"] if segment["name"] == "nccl-Left12")
    def ours(report):
        return [{key: value for key, value in segment.items() if key != "orphan_why"}  # it contains the age in seconds
                for segment in report["segments"] if segment["device"] == device]
    assert len(ours(everything)) >= 7
    assert ours(everything_then) == ours(everything)
    for key in ("shm", "attributed", "unattributed"):
        assert everything_then[key] == everything[key], key

    for key in ("environment", "shm", "limits", "verdict"):
        assert judged_then[key] == judged[key], key
    assert [line.split(":")[0] for line in judged_then["skipped"]] == [line.split(":")[0] for line in judged["skipped"]]
    for key in ("total", "cgroup_limit"):
        assert judged_then["memory"][key] == judged["memory"][key], key
    assert [(f["id"], f["severity"], f["fixes"]) for f in judged_then["findings"]] == \
        [(f["id"], f["severity"], f["fixes"]) for f in judged["findings"]]


@needs_root
@pytest.mark.outside  # in a namespace, processes outside of it could hold a file that seems unused
def test_a_plain_users_capture_knows_what_nobody_has_open(small_shm, ordinary):
    """A lease shows it, as in the program itself: the user cannot inspect pid 1, which may hold anything."""
    machine = ordinary(small_shm)
    program = "kept = open('/dev/shm/psm_kept', 'w'); kept.write('x'); kept.flush(); " \
              "left = open('/dev/shm/psm_left', 'w'); left.write('x'); left.close()"
    with scratch_directory() as scratch, holder(machine, program):
        directory = pathlib.Path(scratch)
        capture(machine, directory)
        assert (directory / "tree/.capture/open").read_text() == "dev/shm/psm_kept 1\ndev/shm/psm_left 0\n"

        tree = make.Tree(directory / "tree")
        tree.edit(b".capture/clock", lambda data: b"%f %f\n" % tuple(float(word) + 120 for word in data.split()))
        tree.write(directory / "two minutes later")
        found = {segment["name"]: segment["orphan"] for segment in ps(directory / "two minutes later")["segments"]}
        assert found["psm_left"] == "yes" and found["psm_kept"] == "no"
