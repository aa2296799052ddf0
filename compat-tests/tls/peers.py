"""TLS between servers: what a server accepts at its election port, whom it dials, and pairs with a Java server."""

import contextlib
import socket
import ssl
import struct
import threading
import time

from factory import PASSWORD, folder
from server import Server, free_port

SERVED, REFUSED = "served", "refused"
PATIENCE = 30


def stores(kind="rsa.jks", trust="trust.jks", password=PASSWORD):
    made = folder()
    return [f"ssl.quorum.keyStore.location={made / kind}", f"ssl.quorum.keyStore.password={password}",
            f"ssl.quorum.trustStore.location={made / trust}", f"ssl.quorum.trustStore.password={PASSWORD}"]


class Fake:
    """A member that does not run a server: it waits for the dial of the server under test, or dials it.

    `listens`: the context with which it accepts; `None`: it reads what comes as it is; a function: what it does with the socket, and gives the
    outcome; not given: it listens not at all.
    """

    def __init__(self, number, host="127.0.0.1", **how):
        self.number, self.host, self.outcome, self.decided = number, host, "no dial", threading.Event()
        self.port = free_port()
        if "listens" in how:
            self.listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self.listen, args=(how["listens"],), daemon=True).start()

    def line(self):
        return f"server.{self.number}={self.host}:{free_port()}:{self.port}"

    def listen(self, context):
        with contextlib.suppress(OSError):
            while True:
                dialed, _ = self.listener.accept()
                threading.Thread(target=self.hear, args=(dialed, context), daemon=True).start()

    def hear(self, dialed, context):
        """Whether the server sends its hello."""
        outcome = REFUSED
        dialed.settimeout(PATIENCE)
        with dialed, contextlib.suppress(OSError):
            if callable(context):
                outcome = context(dialed)
            elif context is None:
                outcome = SERVED if dialed.recv(100)[:6] == b"\xff\xff\xff\xff\xff\xff" else REFUSED
            else:
                with context.wrap_socket(dialed, server_side=True) as stream:
                    outcome = SERVED if stream.recv(100) else REFUSED
        if not self.decided.is_set():
            self.outcome = outcome
            self.decided.set()

    def hello(self):
        address = f"{self.host}:{self.port}".encode()
        return struct.pack(">qqi", -65536, self.number, len(address)) + address


class Looking(Server):
    """A member that looks for a leader and finds none: all others are `Fake`."""

    def __init__(self, command, settings, fakes, host="127.0.0.1"):
        self.fakes, self.election = {fake.number: fake for fake in fakes}, free_port()
        lines = [f"server.1={host}:{free_port()}:{self.election}", *(fake.line() for fake in fakes), "initLimit=20", "syncLimit=10", *settings]
        super().__init__(command, lines)
        (self.folder / "data/myid").write_text("1\n")

    def serves(self):
        return self.is_open(self.election) and self.is_open(self.secure)

    def remove(self):
        for fake in self.fakes.values():
            with contextlib.suppress(AttributeError):
                fake.listener.close()
        super().remove()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def dialed(number):
    """Row: the server dials this member."""

    def attempt(server):
        fake = server.fakes[number]
        fake.decided.wait(PATIENCE)
        return fake.outcome

    return attempt


def answered(stream, hello):
    """Whether a hello gets notifications."""
    stream.sendall(hello)
    return SERVED if stream.recv(100) else REFUSED


def dials(number, context):
    """Row: this member dials the server. Without context it has no TLS."""

    def attempt(server):
        hello = server.fakes[number].hello()
        try:
            with connect(server.election) as plain:
                if context is None:
                    return answered(plain, hello)
                with context.wrap_socket(plain) as stream:
                    return answered(stream, hello)
        except TimeoutError:
            return "waits"
        except (OSError, ssl.SSLError):
            return REFUSED

    return attempt


def silent(server):
    """Row: a connection that says nothing."""
    with connect(server.election) as plain:
        try:
            return REFUSED if not plain.recv(1) else SERVED
        except TimeoutError:
            return "waits"
        except OSError:
            return REFUSED


class Member(Server):
    """One of a pair."""

    def __init__(self, command, number, settings):
        super().__init__(command, ["initLimit=20", "syncLimit=10", *settings])
        (self.folder / "data/myid").write_text(f"{number}\n")

    def is_member(self):
        return any(f"Mode: {mode}" in self.word("srvr") for mode in ("leader", "follower"))


class Pairs:
    """In place of a server: each row starts its own two."""

    workers = 2

    def __init__(self, command):
        self.command = command

    def start(self):
        pass

    def remove(self):
        pass


def pair(own, other, number=1, host="127.0.0.1", seconds=25):
    """Row: the server, with the settings `own`, and one of Java with `other` become an ensemble. `number`: of the server.
    `seconds`: after so many they are refused; on a busy machine a pair that is served needs more than usual."""

    def attempt(pairs):
        lines = [f"server.{at}={host}:{free_port()}:{free_port()}" for at in (1, 2)]
        members = [Member(pairs.command, number, [*lines, *own]), Member("java", 3 - number, [*lines, *other])]
        try:
            for member in members:
                member.launch()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                if all(member.is_member() for member in members):
                    return SERVED
                time.sleep(0.2)
            return REFUSED
        finally:
            for member in members:
                member.remove()

    return attempt
