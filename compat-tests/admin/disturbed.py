"""Requests without a pause while leaders are stopped and followers become leaders, and slow clients while a server ends."""

import http.client
import json
import os
import re
import signal
import socket
import threading

from admin_server import Standalone, answers, is_open, with_admin, with_metrics
from members import Ensemble, until
from wire import EXISTS, Session, buffer

COMMANDS = [f"/commands/{name}" for name in "monitor connections dump watches watches_by_path stats leader voting_view".split()] + ["/ready", "/live"]
DOWN = "This ZooKeeper instance is not currently serving requests"
# What the whole answer to a four-letter word looks like.
WHOLE = {
    "mntr": r"(zk_\w+(\{.*\})?\t.*\n){300,}zk_znode_count\t.*\n", "cons": r"( /.*\n)*\n", "dump": r"(.*\n)+Connections Sets \(\d+\)/\(\d+\):\n(.*\n)*",
    "srvr": r"(.*\n)*Node count: \d+\n(Proposal sizes .*\n)?", "stat": r"(.*\n)*Node count: \d+\n(Proposal sizes .*\n)?",
    "wchp": r"(/.*\n(\t0x.*\n)+)*\n", "isro": r"r[ow]|null",
}
METRICS = r"(# (HELP|TYPE) \w+ .*\n|\w+(\{.*\})? \S+\n)+"
WATCHED = "/a-path-that-makes-the-answer-longer-than-a-buffer-of-a-socket/" + 100 * "x" + "/{}"
ROUNDS = 6 if os.environ.get("OXKEEPER_LONG") else 3


def check_page(path, status, body):
    """Checks that an answer which a client takes for whole is so."""
    if path == "/metrics":
        text = body.decode()
        last = re.findall(r"(?m)^# TYPE (\w+) ", text)[-1]  # They are sorted; gauges go with a role.
        assert status == 200 and re.fullmatch(METRICS, text) and last in ("write_per_namespace", "znode_count"), (status, text[-300:])
    elif path.startswith("/commands/"):
        assert status == 200 and "command" in json.loads(body), (path, status, body[-300:])
    else:
        assert status in (200, 503), (path, status)


class Requests:
    """Threads that ask each member for all pages and words in turn, each thread as fast as it is answered."""

    def __init__(self):
        self.stopped, self.answered, self.refused, self.cut, self.failures = threading.Event(), 0, 0, 0, []
        self.threads = []

    def ask(self, work, *arguments):
        def run():
            while not self.stopped.is_set():
                try:
                    work(*arguments)
                    self.answered += 1
                except http.client.IncompleteRead:  # The client knows that bytes are missing.
                    self.cut += 1
                except (OSError, http.client.BadStatusLine):  # Closed without an answer.
                    self.refused += 1
                    self.stopped.wait(0.01)
                except Exception as error:  # A thread has no other way to fail the test.
                    self.failures.append(f"{type(error).__name__}: {error}")
                    return
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def end(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        assert not self.failures, "\n".join(self.failures)
        return f"{self.answered} answers, {self.refused} connections without one, {self.cut} cut answers"


def pages(port, paths):
    """Asks for all pages on one connection, then for the first one on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for path in paths:
            connection.request("GET", path)
            answer = connection.getresponse()
            check_page(path, answer.status, answer.read())
    finally:
        connection.close()


def words(port):
    for word, whole in WHOLE.items():
        text = ""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(word.encode())
            with connection.makefile("rb") as stream:
                text = stream.read().decode()
        if not text:
            raise ConnectionError("closed")
        assert DOWN in text or re.fullmatch(whole, text), (word, text[-300:])


def with_watches(address, number):
    """A session with watches, of which lists of watches are made: 200 bytes for each."""
    session = Session(address, 12_000)
    for first in range(0, number, 2000):
        for at in range(first, first + 2000):
            session.send(EXISTS, buffer(WATCHED.format(at).encode()) + b"\1")
        for _ in range(2000):
            session.receive()
    return session


# rows: A-12 A-15 A-21 A-22 A-29 A-33 M-40
def role_changes(command):
    """Leaders are stopped in turn by TERM under requests of all kinds: each answer is whole or missing, and all members end well."""
    if command == "java":
        return
    three, requests = Ensemble("ooo", command), Requests()
    try:
        ports = {member: (with_admin(member.folder / "zoo.cfg"), with_metrics(member.folder / "zoo.cfg")) for member in three.members}
        three.start()
        sessions = [with_watches(member.address, 4000) for member in three.members]
        for member, (admin, metrics) in ports.items():
            for work, *arguments in ((pages, admin, COMMANDS), (pages, metrics, ["/metrics"] * 5), (words, member.port)):
                requests.ask(work, *arguments)
        for _ in range(ROUNDS):
            leader = three.leader()
            begun = requests.answered
            until("answers before a change", lambda: requests.answered > begun + 30)
            code = ended(leader)
            assert code == 0, f"exit code {code}\n{leader.tail(40)}"
            three.wait("another leader")
            begun = requests.answered
            until("answers after a change", lambda: requests.answered > begun + 30)
            three.start(leader)
        print(f"role_changes: {requests.end()}")
        for member in three.members:
            ended(member)
            text = member.log.read_text()
            assert "panicked" not in text and "did not read their final replies" not in text, member.tail(60)
        del sessions
    finally:
        requests.stopped.set()
        three.remove()


def ended(member):
    """Stops a member by TERM; its exit code."""
    process, member.process = member.process, None
    os.killpg(process.pid, signal.SIGTERM)
    return process.wait(30)


# rows: A-34 A-35
def slow_readers(command):
    """A server that is stopped sends clients the rest of answers that it has begun."""
    if command == "java":
        return
    one = Standalone(command)
    try:
        metrics = with_metrics(one.folder / "zoo.cfg")
        one.start()
        until("AdminServer", lambda: answers(one.admin) and is_open(metrics))
        session = with_watches(one.address, 100_000)
        asked = {"1.1": (one.admin, b"GET /commands/watches HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", b"0\r\n\r\n"),
                 "1.0": (one.admin, b"GET /commands/wchp HTTP/1.0\r\n\r\n", b'"error" : null\n}'),
                 "wchp": (one.port, b"wchp", b"\n\n")}
        opened = {}
        for name, (port, request, _) in asked.items():
            opened[name] = socket.socket()
            opened[name].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # The answer does not fit into it.
            opened[name].connect(("127.0.0.1", port))
            opened[name].sendall(request)
        begun = {name: connection.recv(1000) for name, connection in opened.items()}
        os.killpg(one.process.pid, signal.SIGTERM)
        until("TERM in the log", lambda: "stopping: requests under way" in one.log.read_text())
        for name, connection in opened.items():
            with connection, connection.makefile("rb") as stream:
                text = begun[name] + stream.read()
            assert text.endswith(asked[name][2]), (name, len(text), text[-200:])
        assert one.process.wait(30) == 0
        del session
    finally:
        one.remove()
