#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the trees of machines to replay; README.md says which are captured and which are made.

  make.py unpack DIR                all of them: the captured ones from their archives, and those that are made from them
  make.py tidy RAW NAME [options]   a capture (scripts/capture-root) becomes NAME.tar.gz: small, and without names of the
                                    machine that it was taken on
"""

import argparse
import gzip
import io
import os
import pathlib
import re
import shutil
import socket
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent
ARCHIVE = ".tar.gz"


class Tree:
    """Files, links and empty directories by their path below the root; bytes throughout, for names and contents may be
    anything."""

    def __init__(self, directory=None):
        self.files = {}
        self.links = {}
        self.empty = set()
        for folder, directories, names in os.walk(os.fsencode(directory)) if directory else ():
            for name in directories + names:
                full = os.path.join(folder, name)
                path = os.path.relpath(full, os.fsencode(directory))
                if os.path.islink(full):
                    self.links[path] = os.readlink(full)
                elif name in names:
                    with open(full, "rb") as file:
                        self.files[path] = file.read()
                elif not os.listdir(full):
                    self.empty.add(path)

    @classmethod
    def captured(cls, name):
        """From its archive. The links in there lead anywhere, and are written as they are."""
        tree = cls()
        with tarfile.open(HERE / (name + ARCHIVE)) as archive:
            for member in archive:
                path = os.fsencode(member.name)
                if member.issym():
                    tree.links[path] = os.fsencode(member.linkname)
                elif member.isdir():
                    tree.empty.add(path)
                else:
                    tree.files[path] = archive.extractfile(member).read()
        return tree

    def write(self, directory):
        shutil.rmtree(directory, ignore_errors=True)
        for path, data in self.files.items():
            full = self.place(directory, path)
            with open(full, "wb") as file:
                file.write(data)
        for path, target in self.links.items():
            os.symlink(target, self.place(directory, path))
        for path in self.empty:
            os.makedirs(os.path.join(os.fsencode(directory), path), exist_ok=True)

    def pack(self, name):
        """The same tree makes the same bytes: in order, of no time and of no user."""
        with open(HERE / (name + ARCHIVE), "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed, \
                tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted({*self.files, *self.links, *self.empty}):
                member = tarfile.TarInfo(os.fsdecode(path))
                data = self.files.get(path, b"")
                if path in self.links:
                    member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(self.links[path])
                elif path in self.empty:
                    member.type, member.mode = tarfile.DIRTYPE, 0o755
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    @staticmethod
    def place(directory, path):
        full = os.path.join(os.fsencode(directory), path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return full

    def edit(self, path, change):
        """change(contents) → contents, where the file exists."""
        if path in self.files:
            self.files[path] = change(self.files[path])

    def edit_lines(self, path, change):
        """change(line) → line, or None to leave it out."""
        def lines(data):
            changed = [change(line) for line in data.split(b"\n")[:-1]]
            return b"".join(line + b"\n" for line in changed if line is not None)
        self.edit(path, lines)

    def remove(self, prefix):
        def below(path):
            return path == prefix or path.startswith(prefix + b"/")
        for table in (self.files, self.links):
            for path in filter(below, list(table)):
                del table[path]
        self.empty = {path for path in self.empty if not below(path)}

    def pids(self):
        return sorted(int(path.split(b"/")[1]) for path in self.files if re.fullmatch(rb"proc/\d+/stat", path))

    def of_processes(self, name):
        """The paths of one file of every process."""
        return [b"proc/%d/%s" % (pid, name) for pid in self.pids()]

    def self_pid(self):
        return int(self.links[b"proc/self"])


# Captured trees, made fit for keeping

def stat_fields(stat):
    """The name in parentheses, and what follows it."""
    return stat[stat.index(b"(") + 1:stat.rindex(b")")], stat[stat.rindex(b")") + 2:].split(b" ")


def is_segment(path):
    return path.startswith((b"/dev/shm/", b"/memfd:"))


# Enough to know a Python process with PyTorch by, and to look like one.
KEPT_MAPS = re.compile(rb"\[(heap|stack|vdso)\]$|/(python3[\d.]*|ld-linux[^/]*|libc\.so\.6|libtorch\w*\.so[\d.]*"
                       rb"|libc10\.so|libshm\.so|torch_shm_manager|systemd)$|^/dev/(shm|zero)|^/memfd:")


def map_path(line):
    fields = line.split(None, 5)
    return fields[5] if len(fields) == 6 else b""


def trim_smaps(data):
    """Only the mappings of segments: a PyTorch process has a thousand others."""
    blocks = re.split(rb"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", data)
    return b"".join(block for block in blocks if is_segment(map_path(block.split(b"\n")[0])))


def trim_fds(tree, pid):
    """Segments, the first three, and a few of the sockets and pipes."""
    others = 0
    prefix = b"proc/%d/fd/" % pid
    numbers = sorted(int(path[len(prefix):]) for path in tree.links if path.startswith(prefix))
    for number in numbers:
        path = prefix + b"%d" % number
        if is_segment(tree.links[path]) or number < 3:
            continue
        others += 1
        if others > 4:
            del tree.links[path]


def chosen(tree, job):
    """The job with its descendants, what captured it, Slurm's own process above it, and pid 1."""
    parents = {pid: int(stat_fields(tree.files[b"proc/%d/stat" % pid])[1][1]) for pid in tree.pids()}
    kept = {1, tree.self_pid()}
    for pid in parents:
        above = pid
        while above in parents and above != job:
            above = parents[above]
        if above == job:
            kept.add(pid)
    for pid in list(kept):
        parent = parents.get(pid)
        if parent in parents and stat_fields(tree.files[b"proc/%d/stat" % parent])[0] == b"slurmstepd":
            kept.add(parent)
    return kept & set(parents)


def reparent(tree, kept):
    """What hung below a process that is left out hangs below pid 1."""
    for pid in kept - {1}:
        name, fields = stat_fields(tree.files[b"proc/%d/stat" % pid])
        if int(fields[1]) in kept:
            continue
        fields[1] = b"1"
        tree.files[b"proc/%d/stat" % pid] = b"%d (%s) %s" % (pid, name, b" ".join(fields))
        tree.edit(b"proc/%d/status" % pid, lambda data: re.sub(rb"(?m)^PPid:\t\d+", b"PPid:\t1", data))


def make_init(tree):
    """A machine that starts with systemd, whatever the captured one did."""
    _, fields = stat_fields(tree.files[b"proc/1/stat"])
    tree.files[b"proc/1/stat"] = b"1 (systemd) " + b" ".join(fields)
    tree.files[b"proc/1/comm"] = b"systemd\n"
    tree.files[b"proc/1/cmdline"] = b"/sbin/init\0"
    tree.edit(b"proc/1/status", lambda data: re.sub(rb"^Name:\t.*", b"Name:\tsystemd", data))
    tree.edit(b"proc/1/cgroup", lambda data: re.sub(rb"(?m)^(\d+:[^:]*):.*", rb"\1:/init.scope", data))
    tree.remove(b"proc/1/fd")
    tree.remove(b"proc/1/mountinfo")
    if tree.files[b".capture/ids"] == b"0\n":
        tree.links.update({b"proc/1/fd/%d" % number: b"/dev/null" for number in range(3)})
        tree.files[b"proc/1/maps"] = (
            b"55d0c1a00000-55d0c1a0c000 r-xp 00000000 fe:00 131202                     /usr/lib/systemd/systemd\n"
            b"7ffd4f1c5000-7ffd4f1e6000 rw-p 00000000 00:00 0                          [stack]\n")
    tree.empty.add(b"run/systemd/system")


def trim_log(tree, since):
    """Kills by others on the same machine are not the tree's."""
    def recent(line):
        found = re.match(rb"\d+,\d+,(\d+),", line)
        return line if found and since is not None and int(found[1]) >= since * 1e6 else None
    tree.edit_lines(b"dev/kmsg", recent)
    kills = len(re.findall(rb"Killed process", tree.files.get(b"dev/kmsg", b"")))
    tree.edit(b"proc/vmstat", lambda data: re.sub(rb"(?m)^oom_kill \d+", b"oom_kill %d" % kills, data))


def trim_process(tree, pid):
    path = b"proc/%d/" % pid
    tree.edit_lines(path + b"maps", lambda line: line if KEPT_MAPS.search(map_path(line)) else None)
    tree.edit(path + b"smaps", trim_smaps)
    trim_fds(tree, pid)
    if pid not in (1, tree.self_pid()):  # all have the same
        tree.remove(path + b"mountinfo")
        tree.remove(path + b"ns")


def trim_tables(tree):
    """Of .capture, what is about something that is left out."""
    pids = tree.pids()
    def known(line):
        found = re.match(rb"proc/(\d+)/(fd/\d+)?", line)
        gone = found and (int(found[1]) not in pids or (found[2] and found[0] not in tree.links))
        return None if gone else line
    tree.edit_lines(b".capture/stat", known)
    tree.edit_lines(b".capture/statfs", known)


def tidy(options):
    tree = Tree(options.raw)
    if options.job:
        kept = chosen(tree, options.job)
        for pid in set(tree.pids()) - kept:
            tree.remove(b"proc/%d" % pid)
        reparent(tree, kept)
    if options.init:
        make_init(tree)
    trim_log(tree, options.since)
    for pid in tree.pids():
        trim_process(tree, pid)
        tree.edit_lines(b"proc/%d/mountinfo" % pid, lambda line: None if line.split(b" ")[4].startswith(
            tuple(map(os.fsencode, options.drop_mount))) else line)
    trim_tables(tree)
    for path, text in (pair.split("=>", 1) for pair in options.add):
        tree.files[path.encode()] = text.encode().replace(b"\\n", b"\n")

    renames = [(old.encode(), new.encode()) for old, new in (pair.split("=>", 1) for pair in options.rename)]
    def renamed(text):
        for old, new in renames:
            text = text.replace(old, new)
        return text
    tree.files = {renamed(path): renamed(data) for path, data in tree.files.items()}
    tree.links = {path: renamed(target) for path, target in tree.links.items()}
    tree.pack(options.name)


# The second version of control groups, after Documentation/admin-guide/cgroup-v2.rst

CONTROLLERS = b"cpuset cpu io memory hugetlb pids rdma misc\n"


def memory_stat(old):
    """Version 2's names for what version 1 counts, the groups below included."""
    found = dict(line.split() for line in old.split(b"\n")[:-1])
    value = lambda name: int(found[b"total_" + name])
    names = ((b"anon", value(b"rss")), (b"file", value(b"cache")), (b"kernel", 13402112), (b"kernel_stack", 507904),
             (b"pagetables", 3551232), (b"sec_pagetables", 0), (b"percpu", 0), (b"sock", 0), (b"vmalloc", 0),
             (b"shmem", value(b"shmem")), (b"file_mapped", value(b"mapped_file")), (b"file_dirty", 0),
             (b"file_writeback", 0), (b"swapcached", 0), (b"anon_thp", 0), (b"file_thp", 0), (b"shmem_thp", 0),
             (b"inactive_anon", value(b"inactive_anon")), (b"active_anon", value(b"active_anon")),
             (b"inactive_file", value(b"inactive_file")), (b"active_file", value(b"active_file")),
             (b"unevictable", value(b"unevictable")))
    return b"".join(b"%s %d\n" % pair for pair in names)


def group_files(limit=b"max", cpu=b"max", used=0, kills=0, stat=b""):
    return {b"cgroup.controllers": CONTROLLERS, b"memory.max": limit + b"\n", b"memory.high": b"max\n",
            b"memory.swap.max": b"max\n", b"memory.current": b"%d\n" % used, b"cpu.max": cpu + b" 100000\n",
            b"memory.events": b"low 0\nhigh 0\nmax %d\noom %d\noom_kill %d\noom_group_kill 0\n" % (
                214 * kills, kills, kills),
            b"memory.stat": stat, b"cpuset.cpus.effective": b"0-1\n"}


def remove_cgroup_v1(tree, line):
    """Leaves one hierarchy of version 2, with that line in the mount table."""
    tree.remove(b"sys/fs/cgroup")
    for path in tree.of_processes(b"mountinfo"):
        tree.edit_lines(path, lambda old: None if b" /sys/fs/cgroup" in old else old)
        tree.edit(path, lambda data: data + line)


def use_of(tree, group):
    """What the captured group of version 1 used."""
    path = b"sys/fs/cgroup/memory" + group
    return int(tree.files[path + b"/memory.usage_in_bytes"]), memory_stat(tree.files[path + b"/memory.stat"])


def derive_cgroup_v2():
    """Three groups deep: nothing at the leaf, 2 GiB above it, and the limit that counts at the top."""
    tree = Tree.captured("cgroup-v1")
    used, stat = use_of(tree, b"/jobs")
    remove_cgroup_v1(tree, b"31 23 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
                           b"rw,nsdelegate,memory_recursiveprot\n")
    top, middle, leaf = b"jobs.slice", b"jobs.slice/jobs-gpu.slice", b"jobs.slice/jobs-gpu.slice/train.scope"
    groups = {top: group_files(b"1073741824", b"150000", used, 1, stat),
              middle: group_files(b"2147483648", b"max", used, 1, stat),
              leaf: group_files(b"max", b"max", used, 1, stat)}
    tree.files[b"sys/fs/cgroup/cgroup.controllers"] = CONTROLLERS
    tree.files[b"sys/fs/cgroup/cpuset.cpus.effective"] = b"0-1\n"
    for group, files in groups.items():
        tree.files.update({b"sys/fs/cgroup/" + group + b"/" + name: data for name, data in files.items()})
    for path in tree.of_processes(b"cgroup"):
        tree.files[path] = b"0::/init.scope\n" if path == b"proc/1/cgroup" else b"0::/" + leaf + b"\n"
    tree.edit(b"dev/kmsg", lambda data: data.replace(b"oom_memcg=/jobs,", b"oom_memcg=/" + top + b",").replace(
        b"task_memcg=/jobs/train,", b"task_memcg=/" + leaf + b","))
    return tree


def derive_docker_cgroup_v2():
    """Docker gives a container on version 2 a cgroup namespace: it sees its own group as the root."""
    tree = Tree.captured("docker")
    used, stat = use_of(tree, b"")
    remove_cgroup_v1(tree, b"82 81 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup "
                           b"rw,nsdelegate,memory_recursiveprot\n")
    files = group_files(b"4294967296", b"max", used, 0, stat)
    tree.files.update({b"sys/fs/cgroup/" + name: data for name, data in files.items()})
    for path in tree.of_processes(b"cgroup"):
        tree.files[path] = b"0::/\n"
    for pid in {1, tree.self_pid()}:
        tree.links[b"proc/%d/ns/cgroup" % pid] = b"cgroup:[4026532291]"
    return tree


# The hostile tree: everything that a broken capture, a hurried copy or a bad mind could put into one

JUNK = bytes(range(256)) * 3
LONG = b"9" * 40  # more than 64 bits
ESCAPE = b"\x1b]0;owned\x07\x1b[31m"  # would change a terminal's title and colour


def hostile_machine(tree):
    files = tree.files
    files[b"proc/meminfo"] = b"MemTotal:       16384000 kB\nMemFree: " + LONG + b" kB\nMemAvailable:   -3 kB\nShmem:  12"
    files[b"proc/vmstat"] = JUNK
    files[b"proc/pressure/memory"] = b"some avg10=nan avg60=1e999 avg300=-1 total=x\nfull avg10=" + LONG
    files[b"proc/uptime"] = b""
    files[b"proc/sys/vm/max_map_count"] = b"\n"
    files[b"dev/kmsg"] = (b"6,1,1000000,-;Out of memory: Killed process 7 (py) " + ESCAPE + b"(x) anon-rss:1kB\n"
                          b"6,2,99999999999999999999,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/a\n"
                          b"6,3,3000000,-;Memory cgroup out of memory: Killed process 0 (\n" + JUNK +
                          b"\n6,4,4000000,-;Memory cgroup out of memory: Killed process 4321 (python3 (a) " + ESCAPE +
                          b") total-vm:" + LONG + b"kB, anon-rss:5kB, file-rss:-1kB, shmem-rss:2k")
    files[b"etc/systemd/logind.conf"] = b"[Login\nRemoveIPC=yes\n[Login]\nRemoveIPC=maybe\\\nRemoveIPC=yes" + JUNK
    files[b".capture/env"] = b"container=" + ESCAPE + b"\n=\nSLURM_JOB_ID\nKUBERNETES_SERVICE_HOST\0=1\n" + JUNK
    files[b".capture/clock"] = b"nan inf\n"
    files[b".capture/ids"] = b"-1\n"
    files[b".capture/tried"] = b"user_namespaces\nmemfd 2\n" + JUNK
    files[b".capture/statfs"] = (
        b"dev/shm 1021994 4096 16384 999999 99999 10 99999999999\ndev/shm 1021994 1 1 1 1 1 1\n"
        b"proc/self/cwd ef53 " + LONG + b" 1 1 1 1 1\nproc/1/cwd zz 1\n\n" + JUNK)
    memory = next(path for path in files if path.endswith(b"/memory.limit_in_bytes"))
    files[memory] = LONG + b"\n"
    files[memory.replace(b"limit", b"usage")] = b"-1"
    files[memory.replace(b"limit_in_bytes", b"stat")] = b"total_shmem\ntotal_inactive_file " + LONG + JUNK
    for path in tree.of_processes(b"mountinfo"):
        tree.edit(path, lambda data: b"1 2 3\n" + JUNK + b"\n- - - - - - - - -\n" + data[:-40] +
                  b"\n9 9 0:50 / /dev/shm/\\012\\777\\0" + ESCAPE + b" rw - tmpfs x rw,size=" + LONG)


def hostile_processes(tree):
    """Of the docker tree's processes: 1 the trainer, 9 to 12 the workers."""
    files, links = tree.files, tree.links
    def edit_stat(pid, name, parent):
        _, fields = stat_fields(files[b"proc/%d/stat" % pid])
        files[b"proc/%d/stat" % pid] = b"%d (%s) %s" % (pid, name, b" ".join([fields[0], parent, *fields[2:]]))

    edit_stat(1, b"py) R 1 (x \n) S", b"0")
    files[b"proc/1/cmdline"] = b"python\0" + ESCAPE + b"\0tr ain\n.py\0\xff\xfe\0" + b"A" * 5000
    files[b"proc/1/limits"] = b"Limit  Soft  Hard  Units\nMax open files  " + LONG + b"  unlimited  files\nMax proc"
    files[b"proc/1/smaps_rollup"] = b"55-66 ---p\nPss: " + LONG + b" kB\nPrivate_Dirty: x kB\n"
    links[b"proc/1/fd/abc"] = b"/dev/shm/no_number"
    links[b"proc/1/fd/99999999999"] = b"/dev/shm/too_large"
    links[b"proc/1/fd/77"] = b"77"
    links[b"proc/1/fd/78"] = b"/dev/shm/" + ESCAPE + b"\n (deleted) (deleted)"
    links[b"proc/1/fd/79"] = b"/memfd:"
    links[b"proc/1/fd/80"] = b"/memfd:a b (c) (deleted)"
    files[b".capture/stat"] = files[b".capture/stat"] + (
        b"proc/1/fd/78 0:50 4711 100600 0 0 " + LONG + b" 8 1 1\n"
        b"proc/1/fd/79 0:1 4711 100600 0 0 4096 99999999999999999999 1 1\n"
        b"proc/1/fd/80 0:1 4712 100600 0 0 18446744073709551615 36028797018963967 1 1\n"
        b"proc/1/fd/80 0:1 4712 100600 4294967296 0 18446744073709551615 8 nan -1\n"
        b"dev/shm/a\\040b\\040(c)\\040(deleted) 0:50 4713 100600 1 4294967295 18446744073709551615 36028797018963967 1 0"
        b"\n"
        b"dev/shm/-rf 0:50 4713 100600 1 0 1 1 9e99 0\n"
        b"dev/shm/loop 0:50 4714 41777 2 0 40 0 1 1\ndev/shm/up 0:50 4715 41777 2 0 40 0 1 1\n" +
        b"".join(b"dev/shm/deep%s 0:50 4720 40777 2 0 40 0 1 1\n" % b"/1/2/3/4/5/6/7/8/9"[:2 * depth]
                 for depth in range(10)) +
        JUNK + b"\n")

    edit_stat(9, b"", b"9")                       # its own parent
    files[b"proc/9/maps"] = (b"zz-yy r-xp 0 0:0 0 /x\n00400000-00300000 r-xp 0 00:32 1 /libtorch.so\n" +
                             b"ffffffffffffffff-10000000000000000 r-xs 0 00:32 2 /dev/shm/over\n" +
                             files[b"proc/9/maps"] + b"7f00-7f10 rw-s " + LONG + b" 00:32 3 /dev/shm/x\n" + JUNK +
                             b"7f0000000000-7f0000001000 rw-s 00000000 00:32 4715    /dev/shm/cut (dele")
    edit_stat(10, b"ring", b"11")                 # each other's parents
    edit_stat(11, b"ring", b"10")
    tree.remove(b"proc/11/fd")                    # gone while it was looked at
    tree.remove(b"proc/11/maps")
    tree.remove(b"proc/12/status")
    files[b"proc/12/stat"] = files[b"proc/12/stat"][:20]
    files[b"proc/10/status"] = (b"Name:\t" + ESCAPE + b"\nPPid:\t-1\nUid:\t1\nVmRSS:\t" + LONG + b" kB\nRssShmem:\t8 MB\n"
                                b"Threads:\t-5\nSigCgt:\tzz\nCpus_allowed_list:\t0-99999999999,7-3,\n")
    files[b"proc/10/cgroup"] = b"4:memory:/../../../etc\n0::" + b"/a" * 3000 + b"\nx\n"
    for name in (b"0", b"-5", b"007", b"4294967297", b"99999999999999999999", b"12 (copy)", b" 9"):
        files[b"proc/" + name + b"/stat"] = files[b"proc/9/stat"]
        files[b"proc/" + name + b"/status"] = files[b"proc/9/status"]


def hostile_shm(tree):
    for name in (b"a b (c) (deleted)", b"torch_1_2_3\\012", b"deep/1/2/3/4/5/6/7/8/9/leaf", b"-rf"):
        tree.files[b"dev/shm/" + name] = b""
    tree.links[b"dev/shm/loop"] = b"loop"
    tree.links[b"dev/shm/up"] = b"../.."
    tree.remove(b"proc/sys/kernel/osrelease")
    tree.links[b"proc/sys/kernel/osrelease"] = b"osrelease"


def derive_hostile():
    tree = Tree.captured("docker")
    hostile_machine(tree)
    hostile_processes(tree)
    hostile_shm(tree)
    return tree


def add_unkeepable(directory):
    """What makes tools stumble over a tree that lies about: special files, names that break them, and ways out of it."""
    top = os.fsencode(directory)
    def replace(path):
        full = Tree.place(top, path)
        if os.path.lexists(full):
            os.unlink(full)
        return full
    for path in (b"proc/pressure/memory", b"proc/9/smaps", b"proc/9/limits", b"proc/10/cmdline",
                 b"etc/systemd/logind.conf"):
        os.mkfifo(replace(path))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(replace(b"proc/uptime")))
    listener.close()
    for name in (b"torch_1_2_3\nnccl-x", b"sem.\x1b[2J", b"\xff\xfe\x01", b"x" * 255):
        with open(replace(b"dev/shm/" + name), "wb"):
            pass
    os.makedirs(Tree.place(top, b"proc/9\n10/x"))
    with open(replace(b"proc/10/maps"), "wb") as file:  # a gigabyte without a newline
        file.truncate(1 << 30)
    with open(os.path.join(top, b".capture/stat"), "ab") as file:
        for number, name in enumerate((b"torch_1_2_3\\012nccl-x", b"sem.\\033[2J", b"\xff\xfe\\001")):
            file.write(b"\ndev/shm/%s 0:50 %d 100600 1 0 8192 16 1 1" % (name, 4800 + number))
    # Links that lead to the machine at hand must lead nowhere.
    os.symlink(b"/proc/self/status", replace(b"proc/10/smaps_rollup"))
    os.symlink(b"/proc/1", replace(b"proc/4001"))
    os.symlink(b"/run", replace(b"run"))
    os.symlink(b"/dev/zero", replace(b"proc/sys/vm/overcommit_memory"))


DERIVED = {"cgroup-v2": derive_cgroup_v2, "docker-cgroup-v2": derive_docker_cgroup_v2, "hostile": derive_hostile}


def unpack(directory):
    """Writes all trees, and prints their names."""
    for path in sorted(HERE.glob("*" + ARCHIVE)):
        name = path.name[:-len(ARCHIVE)]
        Tree.captured(name).write(directory / name)
        print(name)
    for name, make in DERIVED.items():
        make().write(directory / name)
        print(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("tidy")
    command.add_argument("raw")
    command.add_argument("name")
    command.add_argument("--job", type=int, help="leave out what is not this process's family")
    command.add_argument("--init", action="store_true", help="write pid 1 as systemd")
    command.add_argument("--since", type=float, metavar="SECONDS", help="keep kernel messages from then on, after boot")
    command.add_argument("--drop-mount", action="append", default=[], metavar="PLACE")
    command.add_argument("--add", action="append", default=[], metavar="PATH=>TEXT", help="a file of that text")
    command.add_argument("--rename", action="append", default=[], metavar="OLD=>NEW")
    commands.add_parser("unpack").add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "tidy":
        tidy(options)
    else:
        unpack(options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
