"""The clients as processes that all take the same commands on stdin."""

import pathlib
import queue
import re
import subprocess
import threading
import time

import build
import cache
import server as tools

HERE = pathlib.Path(__file__).parent
PERSISTENT, EPHEMERAL, SEQUENTIAL = 0, 1, 2
CREATED, DELETED, CHANGED, CHILD = 1, 2, 3, 4
CONNECTION_LOSS, NO_NODE, BAD_VERSION, NODE_EXISTS, NOT_EMPTY, NO_CHILDREN = -4, -101, -103, -110, -111, -108
PATIENCE = 60  # Seconds; a bound against hanging.


class Refused(Exception):
    """A request ended in an error; `code` is ZooKeeper's number for it, or a text."""

    def __init__(self, code):
        super().__init__(f"error {code}")
        self.code = int(code) if re.fullmatch(r"-?\d+", str(code)) else code


def wait(what, done):
    """`what`: a text, or a function that makes the text when the wait has failed."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        if deadline < time.monotonic():
            raise AssertionError(f"waited {PATIENCE} s in vain for {what() if callable(what) else what}")
        time.sleep(0.02)


class Worker:
    """A client process that reads commands line by line, and prints results and events in the same way.

    Sent: `connect ADDRESS TIMEOUT_MS`, `session`, `create MODE PATH DATA`, `get PATH`, `exists PATH`,
    `set PATH DATA VERSION`, `children PATH`, `delete PATH VERSION`, `multi PATH VERSION`, `close`, and those
    commands of recipes.py that the client has. All reads leave a watch. `multi` checks the version, sets the data to `multi`,
    and creates and deletes PATH/m.
    Received: `ok ANSWER` or `error CODE`, one per line sent; `event TYPE PATH` and `state NAME` at any time.
    """

    versions = True  # Can name the version it expects.
    rewatches = True  # Registers its watches again when it reconnects.

    def __init__(self, command, server, timeout_ms=12000, address=None):
        self.address, self.timeout_ms = address or server.address, timeout_ms
        self.answers, self.events, self.connects, self.session = queue.Queue(), [], 0, None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors())
        threading.Thread(target=self.listen, daemon=True).start()
        self.connect()

    def errors(self):
        return subprocess.DEVNULL

    def listen(self):
        for line in self.process.stdout:
            kind, _, rest = line.decode().rstrip("\n").partition(" ")
            if kind == "event":
                number, path = rest.split(" ", 1)
                self.events.append((int(number), path))
            elif kind == "state":
                self.connects += rest == "SyncConnected"
            else:
                self.answers.put((kind, rest))
        self.answers.put(("error", "client process ended"))

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def connect(self):
        self.ask("connect", self.address, self.timeout_ms)
        wait("a session", lambda: self.connects)
        self.session = int(self.ask("session"), 16)

    def ask(self, *words):
        self.send(" ".join(map(str, words)))
        return self.answer(words)

    def answer(self, words):
        """The answer to the oldest command without one."""
        try:
            kind, answer = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no answer to {words}") from None
        if kind == "error":
            raise Refused(answer)
        return answer

    def create(self, path, mode=PERSISTENT):
        return self.ask("create", mode, path, "new")

    def multi(self, path, version):
        self.ask("multi", path, version)

    def get(self, path):
        data, version, owner = self.ask("get", path).split(" ")
        return data, int(version), int(owner, 16)

    def exists(self, path):
        try:
            self.ask("exists", path)
        except Refused as error:
            if error.code != NO_NODE:
                raise
            return False
        return True

    def set(self, path, data, version=-1):
        return int(self.ask("set", path, data, version))

    def children(self, path):
        return [name for name in self.ask("children", path).split(",") if name]

    def delete(self, path, version=-1):
        self.ask("delete", path, version)

    def expect(self, *event):
        wait(lambda: f"event {event}, came {self.events}", lambda: event in self.events)
        self.events.remove(event)

    def current_session(self):
        return int(self.ask("session"), 16)

    def close(self):
        self.ask("close")
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Kazoo(Worker):
    rewatches = False  # kazoo knows no SetWatches request.

    def __init__(self, server, **more):
        super().__init__([cache.venv_python(), HERE / "kazoo_work.py"], server, **more)


class Java(Worker):
    version = "3.9.5"

    def __init__(self, server, **more):
        super().__init__(build.java("ClientWork.java", self.version), server, **more)


class Curator(Worker):
    def __init__(self, server, **more):
        super().__init__(build.java("curator/RecipeWork.java", "3.9.5", "curator"), server, **more)


class Java34(Java):
    version = "3.4.12"  # The last 3.4 that runs on Java 14 and later: 3.4.13 and 3.4.14 parse InetSocketAddress.toString.


class Java35(Java):
    version = "3.5.10"


class Java36(Java):
    version = "3.6.4"


class Java38(Java):
    version = "3.8.6"


class CSync(Worker):
    def __init__(self, server, **more):
        super().__init__([build.c(), "sync"], server, **more)


class CAsync(Worker):
    def __init__(self, server, **more):
        super().__init__([build.c(), "async"], server, **more)


class Go(Worker):
    def __init__(self, server, **more):
        super().__init__([build.go()], server, **more)


class Node(Worker):
    def __init__(self, server, **more):
        super().__init__(build.node(), server, **more)


class Rust(Worker):
    def __init__(self, server, **more):
        super().__init__([build.rust()], server, **more)


class CliMt(Worker):
    """cli_mt, whose output is meant for people. A sync after each command marks the end of its output."""

    versions = False  # Its commands take no version.
    EVENTS = {"CREATED_EVENT": CREATED, "DELETED_EVENT": DELETED, "CHANGED_EVENT": CHANGED, "CHILD_EVENT": CHILD}

    def __init__(self, server, **more):
        program = build.command("cli_mt", "zookeeper-bin", "/usr/lib/zookeeper/bin/cli_mt")
        self.asked = 0
        super().__init__([program, "-h", server.address], server, **more)

    def errors(self):
        return subprocess.STDOUT  # It prints everything there.

    def listen(self):
        output = []
        for line in self.process.stdout:
            line = line.decode().rstrip("\n")
            if match := re.match(r"Watcher (\w+) state = (\w+)(?: for path (.*))?", line):
                self.connects += match[1] == "SESSION_EVENT" and match[2] == "CONNECTED_STATE"
                if match[1] in self.EVENTS:
                    self.events.append((self.EVENTS[match[1]], match[3]))
            elif match := re.match(r"Got a new session id: 0x(\w+)", line):
                self.session = int(match[1], 16)
            elif line.startswith("\tname = /end-"):
                continue  # The sync prints this after its result.
            elif re.match(r"\[/end-\d+\]: rc = ", line):
                self.answers.put(("ok", "\n".join(output)))
                output = []
            else:
                output.append(line)
        self.answers.put(("error", "client process ended"))

    def connect(self):
        wait("a session", lambda: self.session)

    def ask(self, *words):
        self.asked += 1
        answer = super().ask(*words[:-1], f"{words[-1]}\nsync /end-{self.asked}")
        match = re.search(r": rc = (-?\d+)|Error (-?\d+) for", answer)
        if match and (match[1] or match[2]) != "0":
            raise Refused(match[1] or match[2])
        return answer

    def create(self, path, mode=PERSISTENT):
        flag = ["", "+e ", "+s ", "+es "][mode]
        return re.search(r"^\tname = (.*)$", self.ask("create", flag + path), re.M)[1]

    def get(self, path):
        text = self.ask("get", path)
        data = re.search(r"value_len = \d+\n(.*?)\nStat:", text, re.S)[1]
        return data, int(re.search(r"\tversion=(\w+)", text)[1], 16), int(re.search(r"Owner = (\w+)", text)[1], 16)

    def set(self, path, data, version=-1):
        return int(re.search(r"\tversion=(\w+)", self.ask("set", path, data))[1], 16)

    def children(self, path):
        return sorted(re.findall(r"^\t(.*)$", self.ask("ls", path), re.M))

    def delete(self, path, version=-1):
        self.ask("delete", path)

    def current_session(self):
        return self.session

    def close(self):
        self.send("quit")
        self.process.wait(PATIENCE)
