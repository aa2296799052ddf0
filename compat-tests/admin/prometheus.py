"""The port of metrics as Prometheus reads it: what promtool says of it, what every summary has counted, and scrapes by Prometheus itself."""

import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from admin_server import Standalone, ask, is_open, with_metrics
from members import Ensemble, until
from server import free_port
from wire import CHILDREN, CLOSE, CREATE, EXISTS, GET, OPEN_ACL, SET, Session, buffer

HERE = pathlib.Path(__file__).resolve().parent
CONF = HERE.parent.parent / "conf"
sys.path.append(str(HERE.parent / "words"))
import compare  # noqa: E402

DELETE, SYNC = 2, 9
# Families that are not compared: a JVM's, our own, and Java's queue for each learner (docs/deviations.md).
NOT_COMPARED = r"(jvm|process|oxkeeper|learner_handler_qp)_|ack_latency"
SCRAPES = 6


def requests(address):
    """A session with requests of many kinds, and one that is closed. The first one is returned; it stays open."""
    session, other = Session(address, 12_000), Session(address, 12_000)
    made = [session.call(CREATE, buffer(path) + buffer(b"data") + OPEN_ACL + struct.pack(">i", flags))[0]
            for path, flags in ((b"/a", 0), (b"/a/b", 0), (b"/a/e", 1), (b"/a", 0))]
    assert made == [0, 0, 0, -110], made
    for number in range(20):
        assert other.call(GET, buffer(b"/a") + b"\1")[0] == 0
        assert session.call(SET, buffer(b"/a") + buffer(b"%d" % number) + struct.pack(">i", number))[0] == 0
        other.read()  # The event of the watch.
    for kind, body in ((CHILDREN, buffer(b"/a") + b"\1"), (EXISTS, buffer(b"/none") + b"\1"), (SYNC, buffer(b"/a"))):
        other.call(kind, body)
    assert session.call(SET, buffer(b"/a") + buffer(b"") + struct.pack(">i", 1))[0] == -103
    assert session.call(DELETE, buffer(b"/a/b") + struct.pack(">i", -1))[0] == 0
    other.read()
    other.call(CLOSE)
    return session


def summaries(text, is_member):
    """Counts and integer sums of all summaries, but for times, and for what only Java's threads count: compare.py has the reasons."""
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
    skipped = [keys for keys, _ in compare.EXCEPT + (compare.EXCEPT_MEMBERS if is_member else [])]
    found = []
    for line in text.splitlines():
        name, _, kind = re.match(r"\w*", line)[0].rpartition("_")
        key = f"{'cnt' if kind == 'count' else kind}_{name}"
        if (kinds.get(name) == "summary" and kind in ("count", "sum") and not re.match(NOT_COMPARED, name)
                and not any(re.fullmatch(keys, key) for keys in skipped) and '{key="zookeeper"' not in line):
            found.append(line)
    return "\n".join(sorted(found))


def complaints(text):
    """What `promtool check metrics` says of a scrape: it finds fault with many of Java's names, and must not with ours."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 3), done.stderr  # 3: it could read all, and has complaints.
    lines = done.stderr.splitlines()
    own = [line for line in lines if line.startswith("oxkeeper_")]
    assert not own, own
    return "\n".join(line for line in lines if not re.match(NOT_COMPARED, line))


def settled(port, is_member):
    """promtool's complaints and the summaries of a scrape after which no figure changes: servers count some requests after the answer."""
    last = [""]

    def found():
        text = ask(port, "GET", "/metrics", {})[2].decode()
        before, last[0] = last[0], summaries(text, is_member)
        return before == last[0] and {"promtool check metrics": complaints(text), "summaries": last[0]}
    time.sleep(0.2)
    return until("figures that stay", found)


# rows: M-43 M-44 M-45
def figures(command):
    """What promtool says, and what every summary has counted after the same requests."""
    one = Standalone(command)
    try:
        port = with_metrics(one.folder / "zoo.cfg")
        one.start()
        until("metrics", lambda: is_open(port))
        session = requests(one.address)
        yield "figures-standalone", settled(port, False)
        del session
    finally:
        one.remove()
    three = Ensemble("jjj" if command == "java" else "ooo", "true" if command == "java" else command)
    try:
        ports = {member: with_metrics(member.folder / "zoo.cfg") for member in three.members}
        three.start()
        leader = three.leader()
        session = requests(leader.address)
        for role, member in (("leader", leader), ("follower", next(member for member in three.members if member is not leader))):
            yield f"figures-{role}", settled(ports[member], True)
        del session
    finally:
        three.remove()


class Prometheus:
    """A Prometheus that scrapes these ports every other second, with our alerts."""

    def __init__(self, folder, ports):
        self.port, self.folder, self.log = free_port(), folder / "prometheus", folder / "prometheus.log"
        shutil.copytree(CONF / "prometheus", self.folder)
        targets = ", ".join(f"'127.0.0.1:{port}'" for port in ports)
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}\nrule_files: [alerts.yml]\n"
            f"scrape_configs: [{{job_name: zookeeper, static_configs: [{{targets: [{targets}]}}]}}]\n")
        command = ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data", "--log.level=warn",
                   f"--web.listen-address=127.0.0.1:{self.port}"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def get(self, path, **query):
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read().decode()

    def api(self, path, **query):
        return json.loads(self.get(f"/api/v1/{path}", **query))["data"]

    def values(self, expression):
        return [float(each["value"][1]) for each in self.api("query", query=expression)["result"]]

    def scrapes(self):
        """The least number of scrapes that a target has had."""
        try:
            return min(self.values("count_over_time(up[1h])"), default=0)
        except OSError:  # It is starting.
            return 0


def used_names():
    """The metrics in our dashboard and our alerts, but for those of Prometheus itself and of the machine."""
    used = set(re.findall(r"\b([a-z_]+)\{job=", (CONF / "grafana/zookeeper.json").read_text()))
    for expression in re.findall(r"expr: (.*)", (CONF / "prometheus/alerts.yml").read_text()):
        used |= {word for word in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b(?!\()", expression)}
    return used - {"up", "node_filesystem_avail_bytes"}


def process_figures(port):
    return b"\nprocess_cpu_seconds_total " in b"\n" + ask(port, "GET", "/metrics", {})[2]


def listens(host, port):
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


# rows: M-40 M-41 C-04 C-53 C-54 C-55
def scraped(command):
    """Prometheus scrapes an ensemble under writes: no scrape fails, no sample is dropped, and dashboard and alerts have all their metrics."""
    if command == "java":
        return
    four = Ensemble("ooo+o", command, ["oxkeeper.metrics.jvmStandIns=true"])
    prometheus = None
    try:
        ports = [with_metrics(member.folder / "zoo.cfg") for member in four.members]
        with (four.members[3].folder / "zoo.cfg").open("a") as config:
            config.write("metricsProvider.exportJvmInfo=false\n")
        four.members[0].launch()
        until("metrics", lambda: is_open(ports[0]))
        # Without AdminServer, the ports of metrics answer probes too.
        assert [ask(ports[0], "GET", path, {})[0] for path in ("/ready", "/live")] == [503, 200]
        four.start()
        until("metrics", lambda: all(is_open(port) for port in ports))
        assert [listens(host, ports[0]) for host in ("127.0.0.1", "127.0.0.2")] == [True, False], "metricsProvider.httpHost"
        assert [process_figures(port) for port in ports] == [True, True, True, False], "metricsProvider.exportJvmInfo"
        until("all to be ready", lambda: all(is_open(port, "/ready") and is_open(port, "/live") for port in ports))
        prometheus = Prometheus(four.folder, ports)
        session = requests(four.leader().address)
        while prometheus.scrapes() < (30 if os.environ.get("OXKEEPER_LONG") else SCRAPES):
            assert prometheus.process.poll() is None, prometheus.log.read_text()
            session.call(SET, buffer(b"/a") + buffer(b"x") + struct.pack(">i", -1))
            time.sleep(0.05)
        targets = prometheus.api("targets")["activeTargets"]
        assert [each["lastError"] for each in targets if each["health"] != "up"] == [] and len(targets) == 4, targets
        assert prometheus.values("min_over_time(up[1h])") == [1] * 4
        assert prometheus.values("scrape_samples_scraped == scrape_samples_post_metric_relabeling > 400"), "samples were dropped"
        own = re.findall(r"(?m)^(prometheus_target_(?:scrapes?_\w*(?:out_of|duplicate|exceeded)\w*)) (\S+)$", prometheus.get("/metrics"))
        assert len(own) >= 5 and all(value == "0" for _, value in own), own
        rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
        assert len(rules) > 20 and [rule for rule in rules if rule["health"] != "ok"] == [], rules
        missing = used_names() - set(prometheus.api("label/__name__/values"))
        assert not missing, f"used in the dashboard or the alerts, and not exported: {sorted(missing)}"
        assert sum(prometheus.values("oxkeeper_is_leader")) == 1 and max(prometheus.values("rate(packets_received[1m])")) > 0
        kinds = {each["type"] for each, *_ in prometheus.api("metadata").values()}
        assert kinds <= {"counter", "gauge", "summary", "histogram"}, kinds
        assert not prometheus.log.read_text(), prometheus.log.read_text()
    finally:
        if prometheus:
            prometheus.process.kill()
            prometheus.process.wait()
        four.remove()
