# SPDX-License-Identifier: Apache-2.0
"""The metrics of serve in a real Prometheus (Debian's, from .prometheus or installed), with a real guarded training: every rule is
evaluated there, and every query of the dashboard is run."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from conftest import PROJECT, PYTHONS, TRAIN, Machine, end_tree, free_port, wait_until
from served import OPENMETRICS, serving

pytestmark = [pytest.mark.timed, pytest.mark.xdist_group("prometheus")]  # all share one

DEPLOY = PROJECT / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "shmguard.json").read_text())
RULES = DEPLOY / "prometheus" / "shmguard.rules.yml"
REFERENCE = (PROJECT / "docs" / "reference.md").read_text().split("## Metrics of `serve`\n", 1)[1].split("\n## ", 1)[0]
METRICS = re.findall(r"^\| `(shmguard_\w+)`", REFERENCE, re.M)


def tool(name):
    path = shutil.which(name) or PROJECT / ".prometheus" / "usr" / "bin" / name
    if os.access(path, os.X_OK):
        return path
    if os.environ.get("SHMGUARD_REQUIRE_PROMETHEUS"):
        pytest.fail(f"{name} is required here: scripts/prometheus")
    pytest.skip(f"no {name}: scripts/prometheus unpacks Debian's")


def queries():
    """Title and expression of all panels and annotations, as Grafana would send them for all nodes and jobs."""
    found = [(f"{panel['title']} {target['refId']}", target["expr"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
    found += [(annotation["name"], annotation["expr"]) for annotation in DASHBOARD["annotations"]["list"]]
    for name, value in {"$__rate_interval": "1m", "$__range": "1h", "$instance": ".*", "$job": ".*"}.items():
        found = [(title, expression.replace(name, value)) for title, expression in found]
    return found


class Prometheus:
    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def api(self, path, **parameters):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=20) as response:
            answer = json.load(response)
        assert answer["status"] == "success" and not answer.get("warnings"), answer
        return answer["data"]

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def targets(self):
        with contextlib.suppress(OSError):
            return self.api("targets")["activeTargets"]
        return []


@contextlib.contextmanager
def training(environment):
    """A guarded training that runs until the end of the block."""
    job = Machine().popen(Machine().program, "run", "--quiet", "--budget", "400M", "--", PYTHONS["system"], TRAIN, "--steps", "100000000",
                          "--workers", "1", "--side", "64", env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield job
    finally:
        end_tree(job)


@pytest.fixture(scope="module")
def scraped(tmp_path_factory):
    """A Prometheus with our configuration and rules that has scraped a serve which has seen a training."""
    program = tool("prometheus")
    directory = tmp_path_factory.mktemp("prometheus")
    with training({"SLURM_JOB_ID": "4711", "SLURM_PROCID": "3"}), serving() as served:
        configuration = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
        configuration = configuration.replace("127.0.0.1:9477", f"127.0.0.1:{served.port}").replace("15s", "1s")
        (directory / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\n" + configuration)
        shutil.copy(RULES, directory)
        port = free_port()
        with open(directory / "log", "wb") as log:
            process = subprocess.Popen([program, f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                                        f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            prometheus = Prometheus(port)
            wait_until(lambda: any(target["health"] == "up" for target in prometheus.targets()), "Prometheus scrapes")
            wait_until(lambda: prometheus.query('rate(shmguard_guard_batches_total{rank="3"}[1m]) > 0'), "the training is seen")
            yield prometheus, served
        finally:
            process.terminate()
            process.wait()


def test_metrics_are_clean(scraped):
    _, served = scraped
    text = served.get("/metrics").text
    done = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done
    told = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert told == set(METRICS), "the metrics in docs/reference.md"
    # A textfile is the same text.
    assert not re.search(r"^shmguard\S+ \S+ \d", text, re.M), "no timestamps"


def test_scraped_as_openmetrics(scraped):
    prometheus, served = scraped
    assert served.get("/metrics", Accept=OPENMETRICS).headers["Content-Type"].startswith("application/openmetrics-text")
    target, = prometheus.targets()
    assert target["health"] == "up" and target["lastError"] == ""
    metadata = prometheus.api("metadata")
    # Only OpenMetrics has units, and names counters without _total.
    assert metadata["shmguard_shm_used_bytes"][0]["unit"] == "bytes"
    assert metadata["shmguard_oom_kills"][0]["type"] == "counter"


def test_labels(scraped):
    prometheus, _ = scraped
    series = prometheus.api("series", **{"match[]": '{__name__=~"shmguard_.*"}'})
    allowed = {"__name__", "instance", "job", "role", "rank", "pid", "kind", "backing", "version", "node"}
    assert set().union(*series) <= allowed
    assert all(label["__name__"].startswith("shmguard_process_") for label in series if "pid" in label)
    trainer, = prometheus.query('shmguard_process_rss_bytes{role="trainer",job="4711"}')
    assert trainer["metric"]["rank"] == "3" and trainer["metric"]["pid"].isdigit()
    run, = prometheus.query('shmguard_guard_budget_bytes{job="4711"}')
    assert run["metric"]["rank"] == "3" and float(run["value"][1]) == 400 << 20
    assert float(prometheus.query("shmguard_guard_segments_total")[0]["value"][1]) > 0


def test_rules_are_evaluated(scraped):
    prometheus, _ = scraped
    wait_until(lambda: all(rule["health"] == "ok" for group in prometheus.api("rules")["groups"] for rule in group["rules"]), "rules are evaluated")
    rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
    assert len(rules) >= 11
    firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
    assert firing <= {"ShmguardOomKills"}, "nothing is wrong here, except what other tests on this machine do"


@pytest.mark.parametrize("title, expression", queries(), ids=lambda value: value if "(" not in value and "{" not in value else "")
def test_dashboard(scraped, title, expression):
    prometheus, _ = scraped
    result = prometheus.query(expression)
    end = time.time()
    prometheus.api("query_range", query=expression, start=end - 10, end=end, step=1)
    quiet = ("OOM kills", "Full in", "Refused", "Segments D")  # nothing, if all is well
    if not title.startswith(quiet):
        assert result, "the query finds nothing"


def test_variables_of_the_dashboard(scraped):
    prometheus, _ = scraped
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["query"]["query"]).groups()
            assert prometheus.api(f"label/{label}/values", **{"match[]": metric}), variable["name"]


def test_dashboard_and_rules_name_metrics_that_exist():
    used = set(re.findall(r"shmguard_\w+", RULES.read_text() + " ".join(expression for _, expression in queries())))
    assert used - set(METRICS) == set()
    assert {panel["type"] for panel in DASHBOARD["panels"]} <= {"row", "stat", "gauge", "timeseries"}
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_alert_rules():
    done = subprocess.run([tool("promtool"), "test", "rules", "shmguard.rules.test.yml"], cwd=RULES.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)\n +exp_alerts:\n", (RULES.parent / "shmguard.rules.test.yml").read_text()))
    assert tested == set(re.findall(r"- alert: (\w+)", RULES.read_text())), "each alert fires in a test"
    manual = (PROJECT / "docs" / "serve.md").read_text()
    assert [alert for alert in tested if f"`{alert}`" not in manual] == []


def test_configuration():
    done = subprocess.run([tool("promtool"), "check", "config", "prometheus.yml"], cwd=RULES.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
