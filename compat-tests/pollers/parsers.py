"""What pollers that can't be had from package registries read, restated: each takes a server's answers and fails where its model would.

Written from what these programs accept; none of their text is here.
"""

import json
import re
import urllib.request

NOT_SERVING = "This ZooKeeper instance is not currently serving requests"
STAT_LINES = ("Latency min/avg/max", "Received", "Sent", "Connections", "Outstanding", "Zxid", "Mode", "Node count")


def datadog(server):
    """`stat` by the order of its lines after the first blank one; the version in front; a value that is no number is an error."""
    head, _, rest = server.word("stat").partition("\n\n")
    first, clients, *connections = head.splitlines()
    version = re.match(r"Zookeeper version: (\d+)\.(\d+)\.(\d+)", first)
    assert version and clients == "Clients:", head
    found = {"version": version.groups(), "clients": len(connections)}
    for name, line in zip(STAT_LINES, rest.splitlines(), strict=True):
        label, _, value = line.partition(": ")
        assert label == name, f"{line} in place of {name}"
        if name.startswith("Latency"):
            low, average, high = value.split("/")
            int(low), float(average), int(high)
        elif name == "Zxid":
            assert int(value, 16) > 0, line
        elif name == "Mode":
            found["mode"] = value
        else:
            found[label] = int(value)
    for timed in ("Received", "Sent", "Outstanding"):
        found.pop(timed)
    return found


def pairs(server):
    return [line.split("\t") for line in server.word("mntr").splitlines()]


def netdata(server):
    """Lines of two words with `zk_` in front; others are passed over; the numbers are whole, or the poller rounds them."""
    found = {}
    for line in server.word("mntr").splitlines():
        words = line.split()
        if len(words) == 2 and words[0].startswith("zk_"):
            found[words[0]] = words[1] if words[0] == "zk_server_state" else type(float(words[1])).__name__
    assert found.get("zk_server_state") and "zk_num_alive_connections" in found, found
    return found


def exporter(server):
    """The first line is no refusal; each line is a name and a value by a tab; all but version and state are floats."""
    answer = server.word("mntr")
    first = answer.splitlines()[0]
    assert first != NOT_SERVING and not first.endswith("is not executed because it is not in the whitelist."), first
    found = {}
    for line in answer.splitlines():
        name, value = line.split("\t")
        if name == "zk_version":
            value = re.match(r"([0-9]+\.[0-9]+\.[0-9]+).*", value)[1]
        elif name != "zk_server_state":
            value = type(float(value)).__name__
        found[name] = value
    assert server.word("ruok") == "imok"
    return found


def telegraf_line(server):
    """It gives up at the first line that its pattern does not match."""
    bad = [line for line in server.word("mntr").splitlines() if not re.match(r"^zk_\w[\w.\-]*\s+[\w.\-]+", line)]
    assert not bad, bad
    return "every line"


def asked(server, command):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin}/commands/{command}", timeout=20) as answer:
        assert answer.headers.get_content_type() == "application/json", answer.headers
        return json.load(answer)


def zabbix(server):
    """JSONPaths of the template: `$.server_state`, either name of a summary's count, `$.connections[*].remote_socket_address`."""
    monitor, connections = asked(server, "monitor"), asked(server, "connections")
    found = {name: type(monitor[name]).__name__ for name in (
        "uptime", "outstanding_requests", "avg_latency", "max_latency", "min_latency", "packets_received", "packets_sent", "znode_count",
        "watch_count", "ephemerals_count", "approximate_data_size", "num_alive_connections", "open_file_descriptor_count", "max_file_descriptor_count")}
    found["state"], found["version"] = monitor["server_state"], re.match(r"[\d.]+\d", monitor["version"])[0]
    count = monitor.get("cnt_fsynctime", monitor.get("fsynctime_count"))
    assert isinstance(count, int), monitor
    found["sessions"] = len([each for each in connections["connections"] if re.match(r"127\.0\.0\.1:\d+$", each["remote_socket_address"])])
    assert monitor["error"] is None and connections["error"] is None
    return found


def signoz(server):
    """`curl .../commands/ruok | grep error | grep null`: by lines."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin}/commands/ruok", timeout=20) as answer:
        lines = [line for line in answer.read().decode().splitlines() if "error" in line and "null" in line]
    assert lines
    return lines


RESTATED = (datadog, netdata, exporter, telegraf_line, zabbix, signoz)
