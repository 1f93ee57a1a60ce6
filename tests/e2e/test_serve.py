# SPDX-License-Identifier: Apache-2.0
"""serve: what it answers, to whom, and that no client can disturb it."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from conftest import MIB, PROGRAM, PROJECT, SANITIZED, Machine, as_user, holder, needs_root, wait_until
from schema import SHAPES, check_ps, misfit
from served import OPENMETRICS, samples, serving

TOKEN = "0123456789abcdefghij"

HOLD = """
import mmap, os, sys
fd = os.open("/dev/shm/torch_%d_1_2" % os.getpid(), os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 8 << 20)
segment = mmap.mmap(fd, 8 << 20)
segment.write(b"x" * (8 << 20))
"""

CONTRACT = ["shmguard_shm_size_bytes", "shmguard_shm_used_bytes", "shmguard_segment_bytes", "shmguard_orphan_bytes",
            "shmguard_memory_limit_bytes", "shmguard_memory_available_bytes", "shmguard_oom_kills_total",
            "shmguard_guard_segments_total", "shmguard_guard_reused_total", "shmguard_guard_waits_total",
            "shmguard_guard_refused_total", "shmguard_shm_exhausts_in_seconds"]
OF_PROCESSES = ["shmguard_process_rss_bytes", "shmguard_process_pss_bytes", "shmguard_process_uss_bytes",
                "shmguard_process_shm_bytes", "shmguard_process_open_fds"]


@pytest.fixture(scope="module")
def served():
    with serving() as one:
        yield one


@needs_root
def test_says_what_ps_says(private_shm):
    with holder(private_shm, HOLD) as pid, serving(machine=private_shm) as served:
        answer = served.get("/api/snapshot")
        assert answer.headers["Content-Type"] == "application/json"
        snapshot = json.loads(answer.body)
        assert misfit(snapshot, SHAPES["ps"]) is None
        check_ps(snapshot, 0)
        process = next(process for process in snapshot["processes"] if process["pid"] == pid)
        assert process["shm"] == 8 * MIB and process["pss"] and snapshot["shm"]["used"] == 8 * MIB

        metrics = served.metrics()
        assert set(re.findall(r"^# TYPE (\S+)", served.get("/metrics").text, re.M)) >= {*CONTRACT, *OF_PROCESSES}
        assert metrics["shmguard_shm_size_bytes"] == snapshot["shm"]["size"] == 2048 * MIB
        assert metrics["shmguard_shm_used_bytes"] == 8 * MIB
        assert metrics['shmguard_segment_bytes{kind="torch",backing="shm"}'] >= 8 * MIB, "of this machine, other mounts included"
        assert metrics[f'shmguard_process_shm_bytes{{pid="{pid}",role="other"}}'] == 8 * MIB
        assert metrics[f'shmguard_process_rss_bytes{{pid="{pid}",role="other"}}'] > 8 * MIB


def test_formats(served):
    plain = served.get("/metrics")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE shmguard_oom_kills_total counter" in plain.text
    openly = served.get("/metrics", Accept=OPENMETRICS)
    assert openly.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert "# TYPE shmguard_oom_kills counter" in openly.text and openly.text.endswith("\n# EOF\n")
    assert set(samples(openly.text)) ^ set(samples(plain.text)) <= {name for name in samples(plain.text) if "process_" in name}
    assert all(len(line.split("} ")[-1].split()) <= 2 for line in openly.text.splitlines() if line[0] != "#"), "no timestamps"


def test_only_the_largest_have_a_pid():
    with serving("--processes", "1") as served:
        rows = [name for name in served.metrics() if name.startswith("shmguard_process_rss_bytes")]
        assert len([row for row in rows if 'pid="rest"' not in row]) <= 1 and len(rows) <= 1 + 2 * 4


def test_paths_and_headers(served):
    for path, status in [("/", 200), ("/metrics", 200), ("/api/snapshot", 200), ("/healthz", 200), ("/nothing", 404),
                         ("/api/", 404), ("/metrics/", 404), ("/../etc/passwd", 404), ("/%2e%2e/etc/passwd", 404)]:
        answer = served.get(path)
        if path == "/" and answer.status == 501:
            continue  # built without the page
        assert answer.status == status, (path, answer.text)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Cache-Control"] == "no-store"
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert served.get("/healthz").text == "ok\n"
    assert served.get("/metrics", method="HEAD").body == b""
    refused = served.get("/metrics", method="POST", body=b"")
    assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD"
    assert served.get("/metrics", method="DELETE").status == 405
    assert served.get("/metrics", body=b"x" * 100, method="GET").status == 413


def test_a_strange_name_is_refused(served):
    """A page on the Internet whose name points to 127.0.0.1 must not read anything."""
    for host, status in [("evil.example", 421), (f"evil.example:{served.port}", 421), ("localhost", 200), ("[::1]:1", 200)]:
        assert served.get("/metrics", Host=host).status == status, host


@pytest.mark.timed
def test_stream(served):
    with served.stream() as event:
        first_id, name, data = event()
        history = json.loads(data)
        assert name == "history" and history["keep"] == 900 and history["data"]["schema"] == "shmguard.page/1"
        events = [event() for _ in range(2)]
    assert [name for _, name, _ in events] == ["sample", "sample"]
    run, _, number = first_id.rpartition("-")
    assert [id_ for id_, _, _ in events] == [f"{run}-{int(number) + 1}", f"{run}-{int(number) + 2}"]
    seconds = [json.loads(data)["seconds"] for _, _, data in events]
    assert 0.8 < seconds[1] - seconds[0] < 3


@pytest.mark.timed
def test_a_stream_is_continued(served):
    with served.stream() as other:  # while somebody listens, samples are kept
        other()
        last, _, _ = other()
        run, _, number = last.rpartition("-")
        other()
        with served.stream(last) as event:
            assert event()[0] == f"{run}-{int(number) + 1}"
        for unknown in ("0-1", f"{run}-999999", f"{run}-x", "x" * 200):
            with served.stream(unknown) as event:
                assert event()[1] == "history", unknown
    wait_until(lambda: served.metrics()["shmguard_open_pages"] == 0, "nobody listens")
    sampled = served.metrics()["shmguard_last_sample_timestamp_seconds"]
    wait_until(lambda: served.metrics()["shmguard_last_sample_timestamp_seconds"] > sampled, "a sample that nobody got")
    with served.stream(last) as event:
        names = [event()[1] for _ in range(6)]
    assert "history" in names, "there is a gap, so it begins again"


# Prints what differs between a model that has got all samples and the history that has them.
COMPARE = """
import { append, decode } from "./model.mjs";
const [first, samples, last] = JSON.parse(await new Promise((done) => { let text = ""; process.stdin.on("data", (part) => (text += part)); process.stdin.on("end", () => done(text)); }));
const [grown, whole] = [decode(first.data), decode(last.data)];
for (const sample of samples) append(grown, sample, first.keep);
const differences = [];
const same = (name, a, b) => { if (JSON.stringify(a) !== JSON.stringify(b)) differences.push([name, a, b]); };
const columns = (name, a, b, to) => {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
        same(`${name} ${key}`, (a[key] ?? to.map(() => null)), (b[key] ?? to.map(() => null)));
};
same("times", grown.times.map((t, i) => Math.abs(t - whole.times[i]) < 0.002), whole.times.map(() => true));
columns("job", grown.job, whole.job, whole.times);
columns("sums", grown.sums, whole.sums, whole.times);
const listed = (model) => model.processes.map(({ pid, ppid, role, command, ended }) => [pid, ppid, role, command, ended === null]).sort((a, b) => a[0] - b[0]);
same("processes", listed(grown), listed(whole));
for (const process of grown.processes) {
    const other = whole.processes.find(({ pid, first }) => pid === process.pid && Math.abs(first - process.first) < 0.01);
    if (other) { columns(`process ${process.pid}`, process.series, other.series, whole.times); same(`peaks ${process.pid}`, process.peaks, other.peaks); }
}
same("peaks", { ...grown.peaks, oom_kills: 0 }, { ...whole.peaks, oom_kills: 0 });
process.stdout.write(JSON.stringify(differences.slice(0, 4)));
"""


@pytest.mark.timed
def test_samples_add_up_to_the_history(tmp_path):
    """A page that has followed shows what a page that is opened now shows."""
    esbuild = PROJECT / "web" / "node_modules" / ".bin" / "esbuild"
    if not esbuild.exists() or not shutil.which("node"):
        pytest.skip("no node here: scripts/need web")
    with serving("--interval", "0.1s") as served, served.stream() as event:
        _, _, first = event()
        samples_got = {}
        with holder(Machine(), HOLD.replace("/dev/shm", str(tmp_path))):  # starts and ends in between
            for _ in range(15):
                id_, _, data = event()
                samples_got[int(id_.rpartition("-")[2])] = json.loads(data)
        for _ in range(15):
            id_, _, data = event()
            samples_got[int(id_.rpartition("-")[2])] = json.loads(data)
        with served.stream() as other:
            id_, name, last = other()
        newest = int(id_.rpartition("-")[2])
        while max(samples_got) < newest:
            id_, _, data = event()
            samples_got[int(id_.rpartition("-")[2])] = json.loads(data)
    assert name == "history" and newest > min(samples_got)
    subprocess.run([esbuild, PROJECT / "web" / "src" / "model.ts", "--bundle", "--format=esm", "--platform=node", f"--outfile={tmp_path}/model.mjs",
                    "--log-level=error"], check=True)
    (tmp_path / "compare.mjs").write_text(COMPARE)
    given = json.dumps([json.loads(first), [sample for number, sample in sorted(samples_got.items()) if number <= newest], json.loads(last)])
    done = subprocess.run(["node", tmp_path / "compare.mjs"], input=given, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_token(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with serving("--token-file", file, listen="0.0.0.0:0") as served:
        assert TOKEN not in served.first_line
        for path in ("/", "/metrics", "/api/snapshot", "/api/stream", "/nothing", f"/metrics?token={TOKEN}", "/?token=wrong"):
            answer = served.get(path)
            assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer"), path
        assert served.get("/healthz").status == 200, "a health check has no token"
        assert served.get("/metrics", Authorization="Bearer " + TOKEN).status == 200
        assert served.get("/metrics", Authorization="Bearer " + TOKEN[:-1]).status == 401
        assert served.get("/metrics", Authorization="Bearer " + TOKEN, Host="node17:9477").status == 200
        login = served.get("/?token=" + TOKEN)
        assert login.status == 303 and login.headers["Location"] == "./"
        cookie = login.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Lax" in cookie
        assert served.get("/metrics", Cookie=cookie.partition(";")[0]).status == 200


def test_beyond_this_machine_a_token_is_made():
    with serving(listen="0.0.0.0:0") as served:
        token = re.search(r"\?token=([0-9a-f]{32});", served.first_line).group(1)
        assert served.get("/metrics").status == 401
        assert served.get("/metrics", Authorization="Bearer " + token).status == 200
    with serving("--no-auth", listen="0.0.0.0:0") as served:
        assert len(served.lines) == 2 and "anybody who can connect" in served.lines[0]
        assert served.get("/metrics", Host="node17:9477").status == 200


def test_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with serving(listen="[::1]:0") as served:
        served.url = f"http://[::1]:{served.port}"
        assert served.get("/healthz").text == "ok\n"


def test_port_in_use(here, served):
    done = here.shmguard("serve", "--listen", f"127.0.0.1:{served.port}")
    assert done.returncode == 69 and done.stderr.count(b"\n") == 1, done
    assert b"Address already in use" in done.stderr and b"--listen" in done.stderr


HOSTILE = [b"", b"\r\n\r\n", b"GET", b"GET /metrics", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ", b"\x16\x03\x01\x02\x00\x01\x00",
           b"GET /metrics HTTP/9.9\r\n\r\n", b"GET " + b"/" * 20000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000,
           b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx", b"\0" * 4096, b"\xff\xfe" * 3000,
           b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
           b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           b"GET /%00%ff%zz?token=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
           b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50]


@pytest.mark.timed
def test_bad_clients_disturb_nobody():
    """Clients that are slow, talk nonsense, do not read, or vanish: samples are taken on time, and scrapes answered at once."""
    with serving() as served, served.stream() as event:
        event()
        bad = [served.connect(request) for request in HOSTILE for _ in range(5)]
        stuck = [served.connect(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n", receive_bytes=2048) for _ in range(40)]
        began = time.monotonic()
        for _ in range(20):  # these vanish in the middle of an answer
            gone = served.connect(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # with a reset
            gone.close()
        taken = []
        while time.monotonic() - began < 12:
            taken.append(json.loads(event()[2])["seconds"])
            asked = time.monotonic()
            assert served.get("/metrics").status == 200
            assert time.monotonic() - asked < 2
        gaps = [b - a for a, b in zip(taken, taken[1:])]
        assert len(taken) >= 9 and max(gaps) < 2.5, gaps
        # Requests that are not complete after ten seconds are cut off.
        for connection in bad:
            connection.settimeout(5)
            with connection:
                try:
                    while connection.recv(1 << 16):
                        pass
                except ConnectionResetError:
                    pass
        for connection in stuck:
            connection.close()
        wait_until(lambda: served.metrics()["shmguard_open_pages"] == 1, "those who are gone are forgotten")


def test_too_many_pages():
    with serving() as served:
        request = b"GET /api/stream HTTP/1.0\r\nHost: localhost\r\n\r\n"
        pages = [served.connect(request) for _ in range(400)]
        try:
            wait_until(lambda: served.metrics()["shmguard_open_pages"] == 400, "all pages are open")
            one_more = served.get("/api/stream")
            assert one_more.status == 503 and one_more.headers["Retry-After"]
            assert served.get("/healthz").status == 200
        finally:
            for page in pages:
                page.close()
        wait_until(lambda: served.metrics()["shmguard_open_pages"] == 0, "they are forgotten")


@contextlib.contextmanager
def one_thread_stopped(tid):
    """Stops one thread of a process, as the kernel does when it waits for a disk: ptrace can, signals cannot."""
    seize, interrupt, detach, any_child = 0x4206, 0x4207, 17, 0x40000000
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(seize, tid, None, None) != 0 or libc.ptrace(interrupt, tid, None, None) != 0:
        pytest.skip(f"no ptrace here: {os.strerror(ctypes.get_errno())}")
    os.waitpid(tid, any_child)
    try:
        yield
    finally:
        libc.ptrace(detach, tid, None, None)


@pytest.mark.timed
def test_a_stuck_sampler_is_said():
    """Health is about samples, not about the server: with its sampler stuck, it answers, and says that it is."""
    with serving() as served:
        threads = {int(task.name): (task / "comm").read_text() for task in pathlib.Path(f"/proc/{served.process.pid}/task").iterdir()}
        # The first is the owner's, the sampler's is started before any other that has no name of its own.
        sampler = min(tid for tid, name in threads.items() if tid != served.process.pid and not name.startswith("MHD"))
        with one_thread_stopped(sampler):
            assert served.get("/healthz").status == 200, "a moment is not late"
            late = served.metrics()["shmguard_last_sample_timestamp_seconds"]
            wait_until(lambda: served.get("/healthz").status == 503, "it is late")
            assert re.match(r"The machine has not answered for 1\d s: ", served.get("/healthz").text)
            assert served.metrics()["shmguard_last_sample_timestamp_seconds"] <= late + 1.5
            assert served.get("/api/snapshot").status == 200, "surveys have a thread of their own"
        wait_until(lambda: served.get("/healthz").status == 200, "it goes on")


@pytest.mark.timed
def test_textfile(tmp_path):
    file = tmp_path / "shmguard.prom"
    with serving("--textfile", tmp_path, listen=None) as process:
        wait_until(file.exists, "the file is there")
        seen, until = set(), time.monotonic() + 6
        while time.monotonic() < until:
            text = file.read_text()
            assert text.startswith("# HELP") and text.endswith("# EOF\n"), "a reader must never see half of it"
            seen.add(samples(text)["shmguard_last_sample_timestamp_seconds"])
            time.sleep(0.05)
        assert len(seen) >= 2 and os.listdir(tmp_path) == ["shmguard.prom"]
        assert file.stat().st_mode & 0o777 == 0o666 & ~current_umask()
        sockets = [os.readlink(fd) for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()]
        assert not any(target.startswith("socket:") for target in sockets), "no port is opened"
    assert not file.exists(), "metrics that nobody updates must not look true"


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@needs_root
def test_rights_of_the_unit(private_shm, public):
    """The rights that deploy/systemd/shmguard-serve.service gives are enough to see the processes of others."""
    unit = (PROJECT / "deploy" / "systemd" / "shmguard-serve.service").read_text()
    names = re.search(r"^AmbientCapabilities=(.*)$", unit, re.M).group(1).lower().replace("cap_", "").split()
    rights = ",".join("+" + name for name in names)
    machine = private_shm.within(*as_user(65534, f"--inh-caps=-all,{rights}", f"--ambient-caps=-all,{rights}", "--bounding-set=-all," + rights),
                                 program=public / os.path.basename(PROGRAM))
    with holder(private_shm, HOLD) as pid, serving(machine=machine) as served:
        assert served.metrics()[f'shmguard_process_shm_bytes{{pid="{pid}",role="other"}}'] == 8 * MIB


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps memory that was freed")
@pytest.mark.timed
def test_memory_stays_flat():
    """The short form of bench/serve.py: pages and scrapes come and go."""
    with serving("--interval", "0.1s") as served:
        def resident():
            return int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{served.process.pid}/status").read_text()).group(1)) << 10

        def round_of_clients():
            pages = [served.connect(b"GET /api/stream HTTP/1.0\r\nHost: localhost\r\n\r\n") for _ in range(40)]
            for _ in range(10):
                served.get("/metrics", Accept=OPENMETRICS)
                served.get("/api/snapshot")
            for page in pages:
                page.close()
        for _ in range(3):
            round_of_clients()
        before = resident()
        for _ in range(10):
            round_of_clients()
        assert resident() - before < 8 * MIB, (before, resident())


@pytest.mark.long
@pytest.mark.outside
def test_load():
    """200 pages and a scrape a second, with 64 training processes among 500."""
    done = subprocess.run([sys.executable, PROJECT / "bench" / "serve.py", PROGRAM], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


def test_needs_no_server_for_a_file(here, tmp_path):
    """The options that only a port needs are refused without one."""
    done = here.shmguard("serve", "--textfile", tmp_path, "--no-auth")
    assert done.returncode == 64 and b"--no-auth needs --listen" in done.stderr
