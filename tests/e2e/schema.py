# SPDX-License-Identifier: Apache-2.0
"""The shape of every JSON answer of the program: the names and types that other programs rely on.

A shape is a type, a set of allowed strings, a list of one shape (a list of any length), a dict (at least these keys), or
a tuple of shapes (any of them). None stands for null. A bool is not an int here.
"""

import json

FIX = {"what": str, "command": (str, None), "needs": {"nothing", "root", "restart", "admin"}}

SHM = {"path": {"/dev/shm"}, "state": {"ok"}, "size": int, "used": int, "available": int, "inodes": (int, None),
       "inodes_free": (int, None)}
SHM_UNKNOWN = {"path": {"/dev/shm"}, "state": {"absent", "not-tmpfs", "unknown"}, "size": None, "used": None,
               "available": None, "inodes": None, "inodes_free": None}

CAUSES = {"ok", "shm-exhausted", "budget-exceeded", "cgroup-oom", "system-oom", "killed", "segfault", "bus-error-file",
          "fd-exhausted", "maps-exhausted", "segments-deleted", "python-error", "worker-hang", "unknown"}

CAUSE = {"id": CAUSES, "confidence": float, "summary": str, "evidence": [str], "pid": (int, None)}

VERDICTS = {"steady", "leak", "copy-on-write", "sawtooth", "backlog", "fd-leak", "page-cache", "too-short"}

SITE = {"file": (str, None), "line": (int, None), "function": str, "kind": {"python", "native", "attribute", "type"}, "bytes_per_minute": float,
        "count_per_minute": float, "share": float, "pid": int, "worker": (int, None), "stage": int, "seconds": float, "words": str}
WAITS = {"loader": (float, None), "room": (float, None), "cpu": (float, None), "disk": (float, None)}
FLEET = {
    "job": (str, None), "jobs": int, "clock": {"basis": {"marks", "mixed", "wall-clock"}, "note": (str, None)},
    "nodes": [{"node": (str, None), "node_number": (int, None), "ranks": int, "recordings": int,
               "shm": {"size": (int, None), "used_peak": (int, None)},
               "memory": {"total": (int, None), "available_least": (int, None)},
               "cgroup": {"limit": (int, None), "used_peak": (int, None)},
               "guard": {"budget": (int, None), "bytes_peak": (int, None), "waits": (int, None),
                         "waited_seconds": (float, None), "refused": (int, None)}, "oom_kills": (int, None)}],
    "ranks": [{"rank": (int, None), "node": (str, None), "node_number": (int, None), "job": (str, None), "attempt": (int, None),
               "pid": (int, None), "file": str, "seconds": float, "marks": int, "step_seconds": (float, None),
               "behind_seconds": (float, None), "waits": WAITS, "work_share": (float, None), "rss_peak": (int, None),
               "straggler": bool, "why": ({"room", "cpu", "disk", "work", "unknown"}, None), "evidence": (str, None),
               "advice": (str, None), "clock": {"marks", "wall-clock"}, "clock_offset": float}],
}
SITES = {"sites": [SITE], "types": [SITE], "explained": float, "site_notes": [str]}

SHAPES = {
    "doctor": {
        "schema": {"shmguard.doctor/1"},
        "verdict": {"ok", "warning", "critical"},
        "environment": {"kind": {"bare", "docker", "podman", "kubernetes", "lxc", "unknown"}, "slurm": bool,
                        "can_remount": bool, "user_namespaces": bool, "guard_ready": bool, "shm_owner": ({"pod", "job"}, None)},
        "shm": (SHM, SHM_UNKNOWN),
        "memory": {"total": int, "available": int, "cgroup_limit": (int, None), "cgroup_used": (int, None),
                   "swap_free": int},
        "limits": {"open_files_soft": int, "open_files_hard": int, "max_map_count": int},
        "findings": [{"id": str, "severity": {"info", "warning", "critical"}, "title": str, "evidence": str,
                      "fixes": [FIX]}],
        "skipped": [str],
    },
    "ps": {
        "schema": {"shmguard.ps/1"},
        "shm": (SHM, SHM_UNKNOWN),
        "processes": [{"pid": int, "ppid": int, "role": {"trainer", "worker", "manager", "other"}, "command": str,
                       "rss": int, "pss": (int, None), "uss": (int, None), "rss_shmem": int, "shm": (int, None),
                       "fds": (int, None), "threads": int, "loader_threads": int, "job": (int, None),
                       "start_method": ({"fork", "spawn", "forkserver"}, None), "uid": int}],
        "segments": [{"name": str, "inode": int, "device": str, "size": int, "allocated": int,
                      "allocated_source": {"measured", "estimated"}, "deleted": bool, "backing": {"shm", "memfd"},
                      "kind": {"torch", "nccl", "python", "gloo", "dali", "ray", "mpi", "semaphore", "shmguard",
                               "other"},
                      "origin": (str, None), "holders": [int], "orphan": {"yes", "no", "unknown"}, "orphan_why": str, "uid": (int, None)}],
        "attributed": int, "unattributed": int, "memfd": int, "unreadable_processes": int,
    },
    "clean": {
        "schema": {"shmguard.clean/1"},
        "dry_run": bool,
        "removed": [str],
        "kept": [{"name": str, "why": str}],
        "freed": int,
    },
    "explain": {
        "schema": {"shmguard.explain/1"},
        "cause": CAUSE,
        "detail": (str, None),
        "matched": [str],
        "fixes": [FIX],
        "notes": [str],
    },
    "plan": {
        "schema": {"shmguard.plan/1"},
        "batch_bytes": (int, None), "in_flight": (int, None), "per_trainer": int, "trainers": int, "base": int, "bound": int,
        "recommended": int, "available": (int, None), "fits": bool, "source": {"arithmetic", "measured"},
        "basis": {"loaders", "per-process", "rule-of-thumb", "command", "process"},
        "margin": float, "with_margin": int, "handover": int,
        "collectives": {"kind": {"none", "nccl", "gloo"}, "bytes": int, "source": {"estimated"}},
        "memory": {"total": (int, None), "available": (int, None), "share": (float, None)},
        "guard": {"ready": bool, "memory": int},
        "largest_fit": ({"batch": (int, None), "workers": int}, None),
        "largest_trainers": (int, None),
        "flags": ({"docker": str, "podman": str, "compose": str, "kubernetes": str, "remount": str, "fstab": str}, None),
        "measured": ({"peak": int, "guarded": bool, "now": bool, "seconds": float, "trainers": int, "workers": int,
                      "batch": (int, None), "scaled": bool}, None),
        "processes": [{"pid": int, "role": {"trainer", "worker", "manager", "other"}, "command": str,
                       "rss_peak": (int, None), "shm_peak": (int, None), "own_peak": (int, None)}],
        "loaders": [{"batch": (int, None), "workers": int, "prefetch": int, "held": int, "payload_bytes": int,
                     "batch_bytes": int, "segments": int, "in_flight": int, "semaphore_bytes": int, "bytes": int}],
        "ladder": [{"name": str, "share": float, "batch": (int, None), "workers": (int, None)}],
        "notes": [str],
    },
    "tune": {
        "schema": {"shmguard.tune/1"},
        "trials": [{"values": dict, "rate": (float, None), "cause": CAUSE, "error": (float, None), "seconds": float,
                    "peaks": {"shm": (int, None), "rss": (int, None), "fds": (int, None), "processes": int,
                              "own": (int, None)},
                    "stopped_early": bool, "less_helps": bool}],
        "best": ({"values": dict, "rate": float, "low": float, "high": float, "trials": int, "memory": (int, None)},
                 None),
        "safe": bool, "why": (str, None), "separated": bool, "rivals": int, "unit": {"samples/s", "bytes/s"},
        "start": {"values": dict, "sample_bytes": int, "assumed": bool, "fits": bool, "shm": int},
        "noise": float, "ceiling": (int, None), "grid": int, "trials_most": int, "method": {"gaussian-process"},
        "skipped": [{"values": dict, "estimated": (int, None), "why": str}], "interrupted": bool,
    },
    "where": {"schema": {"shmguard.where/1"}, **SITES},
    "report": {
        "schema": {"shmguard.report/1"},
        "overall": VERDICTS,
        "verdicts": [{"id": VERDICTS, "subject": {"pid": (int, None), "role": {"trainer", "worker", "manager", "other", "job"}},
                      "metric": str, "rate": (float, None), "rate_words": str, "confidence": float,
                      "confidence_words": str, "evidence": str, "exhausts_in": (float, None),
                      "would_exhaust_in": (float, None), "meaning": str, "fixes": [FIX]}],
        "recording": {"file": str, "command": str, "pid": (int, None), "began": (str, None), "seconds": float,
                      "interval": float, "samples": int, "processes": int},
        "shm": {"size": (int, None), "used_peak": (int, None)},
        "peaks": {"shm": (int, None), "rss": (int, None), "fds": (int, None), "processes": int,
                  "cgroup_used": (int, None), "memory_available_least": (int, None), "oom_kills": (int, None),
                  "estimated": {"pss": (int, None)}},
        **FLEET,
        "processes": [{"pid": int, "ppid": int, "role": {"trainer", "worker", "manager", "other"}, "command": str,
                       "first": float, "ended": (float, None), "peaks": {"rss": (int, None), "uss": (int, None)}}],
        "events": [{"seconds": float, "kind": {"born", "ended", "oom-kill", "attempt", "mark", "epoch"}, "pid": (int, None),
                    "role": str, "text": str}],
    },
}

PLAN_TABLE = [{"per_gpu": int, "processes": int, "base": int, "recommended": int}]


def misfit(value, shape, path="$"):
    """Where and how the value does not match the shape, or None."""
    if shape is None:
        return None if value is None else f"{path}: {value!r} instead of null"
    if isinstance(shape, tuple):
        misfits = [misfit(value, one, path) for one in shape]
        return None if None in misfits else " or ".join(misfits)
    if isinstance(shape, set):
        return None if isinstance(value, str) and value in shape else f"{path}: {value!r} is none of {sorted(shape)}"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{path}: {value!r} is no list"
        return next(filter(None, (misfit(item, shape[0], f"{path}[{i}]") for i, item in enumerate(value))), None)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{path}: {value!r} is no object"
        missing = sorted(set(shape) - set(value))
        if missing:
            return f"{path}: lacks {missing}"
        return next(filter(None, (misfit(value[key], shape[key], f"{path}.{key}") for key in shape)), None)
    wanted = (int, float) if shape is float else shape
    fits = isinstance(value, wanted) and (shape is bool or not isinstance(value, bool))
    return None if fits else f"{path}: {value!r} is no {shape.__name__}"


EXIT_VERDICTS = {0: "ok", 1: "warning", 2: "critical"}
SEVERITIES = {"ok": [], "warning": ["warning"], "critical": ["critical"]}


def check_doctor(answer, code):
    assert answer["verdict"] == EXIT_VERDICTS[code]
    severities = [finding["severity"] for finding in answer["findings"]]
    order = ["critical", "warning", "info"]
    assert severities == sorted(severities, key=order.index), "the worst findings come first"
    worst = next((s for s in severities if s != "info"), None)
    assert answer["verdict"] == (worst or "ok")
    ids = [finding["id"] for finding in answer["findings"]]
    assert len(ids) == len(set(ids))
    for finding in answer["findings"]:
        needs = [fix["needs"] for fix in finding["fixes"]]
        assert needs == sorted(needs, key=["nothing", "root", "restart", "admin"].index), "what the user can do comes first"


def check_ps(answer, code):
    assert code == 0
    pids = [process["pid"] for process in answer["processes"]]
    assert len(pids) == len(set(pids))
    keys = [(segment["device"], segment["inode"]) for segment in answer["segments"]]
    assert len(keys) == len(set(keys))
    for segment in answer["segments"]:
        assert segment["holders"] == sorted(set(segment["holders"]))
        assert segment["orphan"] == "no" or not segment["holders"]
        assert segment["backing"] == "shm" or not segment["deleted"]
        major, minor = segment["device"].split(":")
        assert major.isdecimal() and minor.isdecimal()


def check_clean(answer, code):
    assert code in (0, 77)
    assert not set(answer["removed"]) & {kept["name"] for kept in answer["kept"]}
    assert all(kept["why"] for kept in answer["kept"])


def check_explain(answer, code):
    assert code == 0
    assert 0 <= answer["cause"]["confidence"] <= 1
    assert answer["cause"]["summary"]
    assert answer["cause"]["id"] != "unknown" or answer["cause"]["confidence"] == 0


def check_plan(answer, code):
    assert code == 0
    assert answer["base"] == answer["per_trainer"] * answer["trainers"]
    assert answer["base"] <= answer["bound"] == answer["base"] + answer["handover"] * answer["trainers"]
    assert answer["base"] <= answer["with_margin"] <= answer["recommended"] or answer["base"] == 0
    assert (answer["source"] == "measured") == (answer["measured"] is not None)
    if "table" in answer:
        assert misfit(answer["table"], PLAN_TABLE) is None
    for loader in answer["loaders"]:
        assert loader["in_flight"] == loader["workers"] * loader["prefetch"] + loader["held"]
        assert loader["bytes"] == loader["batch_bytes"] * loader["in_flight"] + loader["semaphore_bytes"]


def check_tune(answer, code):
    assert code == (0 if answer["safe"] else 65)
    assert len(answer["trials"]) <= answer["trials_most"]
    assert (answer["best"] is None) == (answer["why"] is None)
    for trial in answer["trials"]:
        assert trial["rate"] is not None or trial["cause"]["id"] != "ok"
    if answer["best"]:
        assert answer["best"]["low"] <= answer["best"]["rate"] <= answer["best"]["high"]
        assert answer["best"]["values"] in [trial["values"] for trial in answer["trials"]]


def check_report(answer, code):
    assert code == 0
    assert answer["overall"] == answer["verdicts"][0]["id"]
    ends = [verdict for verdict in answer["verdicts"] if verdict["exhausts_in"] is not None]
    assert not ends or min(ends, key=lambda verdict: verdict["exhausts_in"])["id"] == answer["overall"]
    assert answer["recording"]["processes"] == len(answer["processes"])
    if "sites" in answer:
        check_where(answer, code)


def check_where(answer, code):
    assert code == 0
    assert misfit(answer, SITES) is None
    assert all(site["kind"] != "type" and 0 <= site["share"] <= 1 for site in answer["sites"])
    assert all(site["file"] and site["line"] for site in answer["sites"] if site["kind"] == "python")
    lines = [site["bytes_per_minute"] for site in answer["sites"] if site["kind"] != "attribute"]
    assert lines == sorted(lines, reverse=True)


CHECKS = {"doctor": check_doctor, "ps": check_ps, "clean": check_clean, "explain": check_explain, "plan": check_plan,
          "report": check_report, "tune": check_tune, "where": check_where}


def loads_checked(command, done):
    """The JSON that `command` printed: one object of the right shape, and nothing else."""
    answer = json.loads(done.stdout)
    problem = misfit(answer, SHAPES[command])
    assert problem is None, problem
    CHECKS[command](answer, done.returncode)
    return answer
