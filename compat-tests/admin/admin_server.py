"""A server with AdminServer, or with the provider of Prometheus, and requests to it."""

import http.client
import struct

import members
from server import Server, free_port, jars, java
from wire import CREATE, EXISTS, OPEN_ACL, Session, buffer

JETTY = ("3.9.5", "admin")  # Version and profile of pom.xml.
PROVIDER = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
HEADERS = ("Content-Type", "Content-Length", "Allow", "Transfer-Encoding", "last_zxid", "snapshot_size")


class Standalone(Server):
    def __init__(self, command, settings=(), flags=()):
        super().__init__(command, settings)
        if command == "java":
            quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
            self.command = java(quiet, *flags, "-cp", jars(*JETTY), members.QUORUM_PEER)
        self.admin = with_admin(self.folder / "zoo.cfg")


def with_admin(config):
    """Turns AdminServer on at a port of its own, which is returned."""
    port = free_port()
    text = config.read_text().replace("admin.enableServer=false\n", f"admin.serverPort={port}\nadmin.serverAddress=127.0.0.1\n")
    config.write_text(text)
    return port


def ask(port, method, path, headers, sent=None):
    """Status, those headers that are compared, and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    if sent is not None:
        connection.putheader("Content-Length", str(len(sent)))
    connection.endheaders(sent)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name: answer.headers[name] for name in HEADERS if answer.headers[name] is not None}, body


def work(address):
    """Two sessions with the same requests; they stay open."""
    open_ones = []
    for number in range(2):
        session = Session(address, 12_000)
        for path, flags in ((f"/app{number}", 0), (f"/app{number}/e", 1 - number)):
            code, _ = session.call(CREATE, buffer(path.encode()) + buffer(b"data") + OPEN_ACL + struct.pack(">i", flags))
            assert code == 0, code
        for _ in range(130 * (1 - number)):
            session.send_set("/app0", b"data", -1)
            assert session.receive()[0] == 0
        assert session.call(EXISTS, buffer(b"/app0") + b"\1")[0] == 0
        open_ones.append(session)
    return open_ones


def answers(port):
    return is_open(port, "/commands/ruok")


def with_metrics(config):
    """Turns the provider of Prometheus on at a port of its own, which is returned."""
    port = free_port()
    config.write_text(config.read_text() + f"{PROVIDER}\nmetricsProvider.httpPort={port}\nmetricsProvider.httpHost=127.0.0.1\n")
    return port


def is_open(port, path="/metrics"):
    try:
        return ask(port, "GET", path, {})[0] == 200
    except OSError:
        return False
