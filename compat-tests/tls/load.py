"""Rows that change the stores while clients connect, and rows that abort many connections and look at what is left of them."""

import contextlib
import hashlib
import os
import pathlib
import resource
import shutil
import socket
import ssl
import struct
import tempfile
import threading
import time

from factory import folder
from peers import REFUSED, SERVED

SWAPS, TAKEN_WITHIN = 34 if os.environ.get("OXKEEPER_LONG") else 6, 4
ABORTS, MEMORY_KB = 400, 24 << 10
SLOW, SLOW_KB = 1500, 64


class Store:
    """A key store in a folder of its own, with one of two leaves."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-reload-"))
        self.path, self.leaf, self.count = self.folder / "server.pem", "ec", 0

    def text(self, leaf):
        return (folder() / f"{leaf}.plain.pem").read_bytes()

    def fingerprint(self):
        first = (folder() / f"{self.leaf}.crt").read_text()
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest()

    def by_symlink(self):
        """As Kubernetes: the file is a link into `..data`, which is a link that is replaced."""
        self.count += 1
        version = self.folder / f"..{self.count}"
        version.mkdir()
        (version / "server.pem").write_bytes(self.text(self.leaf))
        link = self.folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self.folder / "..data")
        if not self.path.is_symlink():
            self.path.symlink_to("..data/server.pem")
        if self.count > 1:
            shutil.rmtree(self.folder / f"..{self.count - 1}")

    def by_rename(self):
        other = self.folder / "new.pem"
        other.write_bytes(self.text(self.leaf))
        other.rename(self.path)

    def in_place(self):
        """Half of it first."""
        text = self.text(self.leaf)
        self.path.write_bytes(text[:len(text) // 2])
        if self.count:
            time.sleep(1.5)
        self.path.write_bytes(text)
        self.count += 1


class Load:
    """Clients that connect all the time, and what certificate each was shown."""

    def __init__(self, port, context, session):
        self.port, self.context, self.session = port, context, session
        self.shown, self.failures, self.is_over = [], [], threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.is_over.is_set():
            began = time.monotonic()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=20) as plain, \
                        self.context.wrap_socket(plain, server_hostname="localhost") as stream:
                    shown = hashlib.sha256(stream.getpeercert(True)).digest()
                    if not self.session(stream):
                        raise OSError("no session")
                self.shown.append((began, shown))
            except OSError as error:
                self.failures.append(error)
            time.sleep(0.02)

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def swapped(store, how, context, session):
    """Row: no connection fails while the store changes, and soon after each change all see it."""

    def attempt(server):
        load = Load(server.secure, context, session)
        try:
            for leaf in ["rsa", "ec"] * (SWAPS // 2):
                time.sleep(0.3)
                store.leaf = leaf
                how(store)
                since = time.monotonic() + TAKEN_WITHIN
                wanted = store.fingerprint()
                time.sleep(TAKEN_WITHIN + 0.7)
                seen = [shown for began, shown in list(load.shown) if began > since]
                if not seen or any(shown != wanted for shown in seen):
                    return "the old one"
        finally:
            load.end()
            shutil.rmtree(store.folder, ignore_errors=True)
        return REFUSED if load.failures else SERVED

    return attempt


class Trust:
    """A trust store that changes."""

    def __init__(self, *roots):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-reload-")) / "trust.pem"
        self.write(*roots)

    def write(self, *roots):
        new = self.path.with_suffix(".new")
        new.write_text("".join((folder() / f"{root}.crt").read_text() for root in roots))
        new.rename(self.path)


def overlapped(trust, old, new):
    """Row: the authority of clients is replaced by another one, with a time when both count. `old`, `new`: clients of either."""

    def attempt(server):
        seen = [(old(server), new(server))]
        for roots in (("ca", "other"), ("other",)):
            trust.write(*roots)
            time.sleep(TAKEN_WITHIN)
            seen.append((old(server), new(server)))
        shutil.rmtree(trust.path.parent, ignore_errors=True)
        wanted = [(SERVED, REFUSED), (SERVED, SERVED), (REFUSED, SERVED)]
        return SERVED if seen == wanted else str(seen)

    return attempt


def abort(plain):
    """Closes with a reset, so that nothing is left at this end."""
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.close()


def stages(context, client_hello, last):
    """How far a connection gets before it is aborted."""

    def tls(plain):
        stream = context.wrap_socket(plain, server_hostname="localhost")
        return stream

    def after_handshake(plain):
        abort(tls(plain))

    def after_last(plain):
        stream = tls(plain)
        stream.sendall(last)
        with contextlib.suppress(TimeoutError):
            stream.settimeout(1)
            stream.recv(100)
        abort(stream)

    def sends(data):
        def send(plain):
            plain.sendall(data)
            abort(plain)
        return send

    def closes(plain):
        tls(plain).close()

    return [abort, sends(client_hello[:2]), sends(client_hello[:60]), sends(client_hello), sends(b"rubbish" * 9), after_handshake, after_last, closes]


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def memory(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def aborted(port, context, client_hello, last):
    """Row: of many connections that are aborted at each stage nothing is left."""

    def play(server, count):
        def run(stage):
            for _ in range(count):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", getattr(server, port)), timeout=20) as plain:
                    stage(plain)

        threads = [threading.Thread(target=run, args=(stage,)) for stage in stages(context, client_hello, last)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def attempt(server):
        before = descriptors(server)
        play(server, ABORTS // 4)  # What is allocated once is allocated now.
        kept = memory(server)
        play(server, ABORTS)
        deadline = time.monotonic() + 25
        while descriptors(server) > before + 4:
            if deadline < time.monotonic():
                return f"{descriptors(server)} descriptors, and {before} before"
            time.sleep(0.2)
        grown = memory(server) - kept
        is_java = server.command[0] == "java"  # Its heap grows as it likes.
        return SERVED if is_java or grown < MEMORY_KB else f"{grown} KB more"

    return attempt


def slow(client_hello, honest):
    """Row: an honest client is served while many others have sent half a ClientHello and go no further; these are closed."""

    def attempt(server):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        before, opened = memory(server), []
        try:
            for _ in range(SLOW):
                opened.append(socket.create_connection(("127.0.0.1", server.secure), timeout=20))
                opened[-1].sendall(client_hello[:100])
            outcome, grown = honest(server), memory(server) - before
            for plain in opened:
                with contextlib.suppress(ConnectionError):
                    while plain.recv(100):
                        pass
        except TimeoutError:
            return "a slow one stays"
        finally:
            for plain in opened:
                plain.close()
        is_java = server.command[0] == "java"
        return outcome if is_java or grown < SLOW * SLOW_KB else f"{grown} KB more"

    return attempt
