"""One server under test, ours or Java's."""

import contextlib
import os
import pathlib
import random
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import cache

START_SECONDS = 60  # A bound against hanging, not an expectation.


def jars(*which):
    """The class path entry that holds Java ZooKeeper: version and profile as for `cache.jars`; the first call downloads it."""
    return f"{cache.jars(*which)}/*"


def java(*arguments):
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", *arguments]


def ports():
    """The ports of blocks that no other process has, as in `common/ports.rs`: each block's first port is bound while this process lives."""
    blocks, held = list(range(11_000, 29_000, 100)), []
    random.shuffle(blocks)
    for first in blocks:
        with contextlib.suppress(OSError):
            held.append(socket.create_server(("127.0.0.1", first)))
            yield from range(first + 1, first + 100)
    raise RuntimeError("no block of ports is left that no other process holds")


# Below the ephemeral port range of outgoing connections: a server that is down must find its ports free again.
PORTS = ports()
PORTS_LOCK = threading.Lock()


def free_port():
    """A port that is free now, and that this process has not handed out before."""
    while True:
        with PORTS_LOCK:
            port = next(PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    """A data directory, a zoo.cfg, and the server process that uses them; it may be ended and started again.

    `settings` are further lines of zoo.cfg, `flags` are for settings that exist only as -D properties.
    """

    def __init__(self, command, settings=(), flags=()):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-compat-"))
        self.log = self.folder / "server.log"
        (self.folder / "data").mkdir()
        config = [
            f"dataDir={self.folder / 'data'}",
            f"clientPort={self.port}",
            "clientPortAddress=127.0.0.1",
            "tickTime=500",  # Sessions expire in multiples of it, so it bounds how long the suites wait.
            "minSessionTimeout=1000",
            "maxSessionTimeout=12000",
            "4lw.commands.whitelist=*",
            "admin.enableServer=false",
            "extendedTypesEnabled=true",
            *settings,
        ]
        (self.folder / "zoo.cfg").write_text("\n".join(config) + "\n")
        if command == "java":
            quorum_peer = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
            self.command = java(quiet, *flags, "-cp", jars(), quorum_peer)
        else:
            self.command = shlex.split(command)
            # The server runs in its own folder, so a relative path to it has to be resolved here.
            self.command[0] = str(pathlib.Path(shutil.which(self.command[0]) or self.command[0]).resolve())
        self.environment = {**os.environ, "SERVER_JVMFLAGS": " ".join(flags)}
        ports = [line.partition("=")[2] for line in config if line.startswith("secureClientPort=")]
        self.secure = int(ports[-1]) if ports else None
        self.process = None

    def launch(self):
        with self.log.open("a") as log:
            # A process group of its own: a signal then also reaches a server that CMD starts through a wrapper.
            self.process = subprocess.Popen([*self.command, self.folder / "zoo.cfg"], cwd=self.folder, stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, env=self.environment,
                                            start_new_session=True)

    def start(self):
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not self.serves():
            if self.process.poll() is not None:
                raise RuntimeError(f"server ended with {self.process.returncode}\n{self.tail()}")
            if deadline < time.monotonic():
                raise RuntimeError(f"server does not answer\n{self.tail()}")
            time.sleep(0.05)
        return self

    def serves(self):
        return "Mode: standalone" in self.word("srvr") and self.is_open(self.secure)

    def is_open(self, port):
        """Whether connections to this port are accepted, if there is one. Java opens the secure port after the other one."""
        if port is None:
            return True
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return True
        except OSError:
            return False

    def word(self, word):
        """The answer to a four-letter word, empty when there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(word.encode())
                answer = b""
                while part := connection.recv(65536):
                    answer += part
                return answer.decode()
        except OSError:
            return ""

    def end(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                raise RuntimeError(f"server ignores {how.name}\n{self.tail()}") from None

    def tail(self, lines=15):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join("    | " + line for line in text.splitlines()[-lines:])

    def remove(self):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
