"""The pollers themselves, where package registries have them."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import cache
from cache import DOWNLOADS, filled, named
from server import jars, java

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = ("kazoo==2.11.0", "zk-shell==1.3.4", "zktop==1.0.0", "setuptools<81")


def output(*command, timeout=60, code=0, **options):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    assert ended.returncode == code, f"{command[0]} ended with {ended.returncode}: {ended.stdout[-500:]} {ended.stderr[-1500:]}"
    return ended.stdout


def of_go(name):
    """The program of one of the folders here, built once; module versions are those of its go.mod, sums those of Go's own database."""
    source = HERE / name
    files = [source / "go.mod", source / "main.go"]

    def build(part):
        for file in files:
            (part / file.name).write_bytes(file.read_bytes())
        subprocess.run(["go", "build", "-mod=mod", "-o", "poller", "."], cwd=part, check=True, stdout=sys.stderr)
    return filled(named(DOWNLOADS, f"poller-{name}", files), build) / "poller"


def python():
    def install(part):
        subprocess.run([sys.executable, "-m", "venv", part], check=True)
        subprocess.run([part / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *PYTHON], check=True)
    return filled(named(DOWNLOADS, "pollers", [*PYTHON, sys.version, sys.base_prefix]), install) / "bin/python"


def telegraf(server):
    """Every field by name and type, and those whose value the work decides."""
    got = json.loads(output(of_go("telegraf"), server.address))
    fields = got["fields"]
    decided = {name: fields[name] for name in ("znode_count", "ephemerals_count", "watch_count", "num_alive_connections", "approximate_data_size")}
    return {"state": got["tags"]["state"], "decided": decided, "fields": sorted(fields), "strings": sorted(n for n, v in fields.items() if isinstance(v, str))}


def otel(server):
    """Every metric by name and kind, and the points of those whose value the work decides."""
    resource = json.loads(output(of_go("otel"), server.address))["resourceMetrics"][0]
    attributes = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
    found = {"state": attributes["server.state"], "version": re.match(r"[\d.]+\d", attributes["zk.version"])[0]}
    for metric in resource["scopeMetrics"][0]["metrics"]:
        kind = next(kind for kind in ("sum", "gauge") if kind in metric)
        points = metric[kind]["dataPoints"]
        value = points[0].get("asInt") if re.search("ephemeral|node.count|watch.count", metric["name"]) else len(points)
        found[metric["name"]] = [kind, metric.get("unit"), value]
    return found


def collectd(server):
    """The plugin of Debian's collectd, which writes what it read to files of CSV."""
    def fetch(part):
        subprocess.run(["apt-get", "download", "-q", "collectd-core"], cwd=part, check=True, stdout=sys.stderr)
        subprocess.run(["dpkg", "-x", next(part.glob("*.deb")), part / "root"], check=True)
    release = pathlib.Path("/etc/debian_version").read_text()
    root = filled(named(DOWNLOADS, "collectd", ["collectd-core", release]), fetch) / "root"
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "collectd.conf"
        config.write_text(f'''Hostname "h"
BaseDir "{folder}"
PIDFile "{folder}/pid"
PluginDir "{root}/usr/lib/collectd"
TypesDB "{root}/usr/share/collectd/types.db"
Interval 1
LoadPlugin csv
LoadPlugin zookeeper
<Plugin csv>
  DataDir "{folder}/csv"
</Plugin>
<Plugin zookeeper>
  Host "127.0.0.1"
  Port "{server.port}"
</Plugin>
''')
        with subprocess.Popen([root / "usr/sbin/collectd", "-f", "-C", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 30
            try:
                while len(files := list((pathlib.Path(folder) / "csv").rglob("*-????-??-??"))) < 10:
                    assert time.monotonic() < deadline, f"collectd wrote {files}"
                    time.sleep(0.2)
                time.sleep(1.5)  # The rest of one round.
                files = list((pathlib.Path(folder) / "csv").rglob("*-????-??-??"))
            finally:
                process.terminate()
                process.wait(20)
        found = {}
        for file in files:
            name, last = file.name[:-11], [float(value) for value in file.read_text().splitlines()[1].split(",")[1:]]
            found[name] = last if re.search("znode|watch|ephemeral|data_size", name) else len(last)
        return found


KAZOO = """
import sys, kazoo.client
client = kazoo.client.KazooClient(sys.argv[1]); client.start(30)
print(client.command(b"ruok"), client.server_version()[:3], client.command(b"isro"), len(client.command(b"mntr").splitlines()) > 400)
print([line.split(":")[0] for line in client.command(b"srvr").splitlines()], b"x" if client.command(b"what") else "")
client.stop()
"""
ZKTOP = """
import sys
address, sys.argv = sys.argv[1], ["zktop"]
import zktop
server = zktop.ZKServer(address, 0)
found = {name: value for name, value in vars(server).items() if name in ("unavailable", "mode", "version", "node_count", "connections", "outstanding")}
found["sessions"] = sorted(sorted(vars(session)) for session in server.sessions)
print(found)
"""
# Its script in bin names the folder in which the environment was made.
ZK_SHELL = "from zk_shell.cli import CLI; CLI()()"
SHELL = ("ls /app", "get /app/a", "tree /app", "child_count /app", "exists /app/a", "get_acls /app", "mntr {0}", "cons {0}", "dump {0}", "chkzk {0}")


def kazoo(server):
    return output(cache.venv_python(), "-c", KAZOO, server.address).splitlines()


def zktop(server):
    return output(python(), "-W", "ignore", "-c", ZKTOP, server.address, env={**os.environ, "TERM": "xterm"}).strip()


def shell(server):
    """zk-shell: its commands on znodes, and those that ask words; numbers that differ from run to run are masked."""
    found = {}
    for line in SHELL:
        code = 1 if line.startswith("chkzk") else 0  # It ends with 1 when all is well, too.
        said = output(python(), "-W", "ignore", "-c", ZK_SHELL, "--run-once", line.format(server.address), server.address, code=code)
        if line.startswith("mntr"):
            said = sorted(each.split("\t")[0] for each in said.splitlines())
        else:
            said = re.sub(r"0x[0-9a-f]+|\d+|[A-Z][a-z]{2} [A-Z][a-z]{2} [^\n]*", "N", said.replace(str(server.port), "PORT"))
        if line.startswith(("cons", "dump", "ls", "tree", "child_count")):  # The order of children means nothing.
            said = sorted(set(said.splitlines()))
        found[line] = said
    return found


# rows: T-10
def admin_client(server):
    """Java's ServerAdminClient, and that of the stand-in for `java`, which have to print the same."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        stand_in = pathlib.Path(folder) / "java"
        stand_in.symlink_to(server.ours)
        for asked in ("ruok", "RUOK", "stat", "dump", "what", "", "x"):
            arguments = ["org.apache.zookeeper.ServerAdminClient", "127.0.0.1", "port" if asked == "x" else server.port, *asked.split()]
            said = []
            for command in (java("-cp", jars()), [stand_in, "-cp", "any"]):
                ended = subprocess.run([str(word) for word in [*command, *arguments]], capture_output=True, text=True, timeout=60)
                first = ended.stdout.partition("\n")[0]  # The rest has connections and times.
                said.append((ended.returncode, re.sub(r"rc=\d{2,}", "rc=N", first)))
            assert said[0] == said[1], f"{asked}: Java's client {said[0]}, ours {said[1]}"
            found[asked] = said[0][1].partition(":")[0]
    return found


QUICK = (kazoo, admin_client)
LONG = (telegraf, otel, collectd, zktop, shell)
