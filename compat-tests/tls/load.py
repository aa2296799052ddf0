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

IS_LONG = bool(os.environ.get("OXKEEPER_LONG"))
SWAPS, OVERLAPS, TAKEN_WITHIN = 34 if IS_LONG else 6, 17 if IS_LONG else 1, 4
PING = struct.pack(">iii", 8, -2, 11)
ABORTS, MEMORY_KB = 400, 24 << 10
SLOW, SLOW_KB = 1500, 64


class Changing:
    """A file in a folder of its own, whose text changes in one of several ways."""

    def __init__(self):
        self.folder, self.count = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-reload-")), 0
        self.path = self.folder / "store.pem"

    def by_symlink(self):
        """As Kubernetes: the file is a link into `..data`, which is a link that is replaced."""
        self.count += 1
        version = self.folder / f"..{self.count}"
        version.mkdir()
        (version / self.path.name).write_bytes(self.text())
        link = self.folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self.folder / "..data")
        if not self.path.is_symlink():
            self.path.symlink_to(f"..data/{self.path.name}")
        if self.count > 1:
            shutil.rmtree(self.folder / f"..{self.count - 1}")

    def by_rename(self):
        other = self.folder / "new.pem"
        other.write_bytes(self.text())
        other.rename(self.path)

    def in_place(self):
        """Half of it first: it ends within a certificate, as one that ends between two is a whole store with fewer."""
        text = self.text()
        self.path.write_bytes(text[:len(text) * 5 // 8])
        if self.count:
            time.sleep(1.5)
        self.path.write_bytes(text)
        self.count += 1


class Store(Changing):
    """A key store with one of two leaves."""

    leaf = "ec"

    def text(self):
        return (folder() / f"{self.leaf}.plain.pem").read_bytes()

    def fingerprint(self):
        first = (folder() / f"{self.leaf}.crt").read_text()
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest()


class Trust(Changing):
    """A trust store with these authorities, and one whose clients are always trusted."""

    roots = ("ca",)

    def text(self):
        return b"".join((folder() / f"{root}.crt").read_bytes() for root in (*self.roots, "pinned"))


class Load:
    """Clients that connect all the time, and what certificate each was shown; and one that stays."""

    def __init__(self, port, context, session):
        self.port, self.context, self.session = port, context, session
        self.shown, self.failures, self.is_over = [], [], threading.Event()
        self.threads = [threading.Thread(target=what, daemon=True) for what in (self.run, self.run, self.run, self.stay)]
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

    def stay(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as plain, \
                    self.context.wrap_socket(plain, server_hostname="localhost") as stream:
                is_served = self.session(stream)
                while is_served and not self.is_over.wait(1):
                    stream.sendall(PING)
                    is_served = stream.recv(100)
                if not is_served:
                    raise OSError("the connection that stays has ended")
        except OSError as error:
            self.failures.append(error)

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


def overlapped(trust, how, old, new, context, session):
    """Row: the authority of clients is replaced by another one, with a time when both count. `old`, `new`: clients of either. Meanwhile no connection
    of a client that is trusted all the time fails; `context` is its."""

    def attempt(server):
        load = Load(server.secure, context, session)
        try:
            for turn in range(OVERLAPS):
                first, second = (old, new) if turn % 2 == 0 else (new, old)
                seen = [(first(server), second(server))]
                for roots in (("ca", "other"), ("ca",) if turn % 2 else ("other",)):
                    trust.roots = roots
                    how(trust)
                    time.sleep(TAKEN_WITHIN)
                    seen.append((first(server), second(server)))
                if seen != [(SERVED, REFUSED), (SERVED, SERVED), (REFUSED, SERVED)]:
                    return str(seen)
        finally:
            load.end()
            shutil.rmtree(trust.folder, ignore_errors=True)
        return REFUSED if load.failures else SERVED

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
