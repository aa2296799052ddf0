"""The members of an ensemble: each is a server of any kind, and may be restarted as another kind."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from server import free_port, jars, java

START_SECONDS = 30  # A bound against hanging, not an expectation.
QUORUM_PEER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JAVA_LOG = os.environ.get("ZK_LOG", "warn")
KINDS = {"j": "Java 3.9.5", "k": "Java 3.8.6", "o": "oxkeeper"}
JARS = {"j": (), "k": ("3.8.6",)}


def fetch(mixes):
    """Downloads Java for these mixes first, so that no part of a test waits for it."""
    for kind in JARS.keys() & set("".join(mixes).lower()):
        jars(*JARS[kind])


class Failed(Exception):
    """An expected state was not reached in time."""


def until(what, condition, seconds=START_SECONDS):
    """Waits until `condition()` is true, and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        if deadline < time.monotonic():
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.03)


def is_stopped(process):
    """Whether every thread of a process is stopped."""
    threads = pathlib.Path(f"/proc/{process}/task").iterdir()
    states = [(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads]
    return all(state == "T" for state in states)


class Member:
    """One server: its id and folder stay, its program may change."""

    def __init__(self, folder, number, kind, command, observes, flags=()):
        self.folder, self.number, self.kind, self.observes = folder / str(number), number, kind, observes
        self.own_command, self.flags = command, flags
        self.port, self.quorum_port, self.election_port = free_port(), free_port(), free_port()
        self.host, self.before = "127.0.0.1", []  # `before`: a prefix of the command, such as `ip netns exec NAME`.
        self.address = f"{self.host}:{self.port}"  # For clients.
        self.log, self.process = self.folder / "server.log", None
        (self.folder / "data").mkdir(parents=True)
        (self.folder / "data/myid").write_text(f"{number}\n")

    def line(self):
        role = "observer" if self.observes else "participant"
        return f"server.{self.number}={self.host}:{self.quorum_port}:{self.election_port}:{role}"

    def command(self):
        if self.kind == "o":
            return self.own_command
        flags = [f"-Dorg.slf4j.simpleLogger.defaultLogLevel={JAVA_LOG}", "-Xmx256m",
                 "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
                 "-Dzookeeper.extendedTypesEnabled=true", "-Dznode.container.checkIntervalMs=500",
                 *(f"-D{line}" for line in self.flags)]
        return java(*flags, "-cp", jars(*JARS[self.kind]), QUORUM_PEER)

    def launch(self, alone=False):
        """`alone`: standalone, on the same data."""
        config = self.folder / "zoo.cfg"
        if alone:
            text = config.read_text()
            config = self.folder / "alone.cfg"
            config.write_text("".join(line for line in text.splitlines(True) if not line.startswith("server.")))
        assert self.process is None, f"{self} runs"
        with self.log.open("a") as log:
            print(f"==== {KINDS[self.kind]}", file=log, flush=True)
            flags = " ".join(f"-D{line}" for line in ["znode.container.checkIntervalMs=500", *self.flags])
            environment = {**os.environ, "SERVER_JVMFLAGS": flags}
            words = [*self.before, *self.command(), config]
            self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env=environment, start_new_session=True)

    def end(self, how=signal.SIGTERM):
        if self.process is None:
            return
        process, self.process = self.process, None
        if (code := process.poll()) is not None:
            raise Failed(f"{self} had exited by itself with status {code}\n{self.tail()}")
        os.killpg(process.pid, how)
        try:
            process.wait(3 if os.environ.get("LENIENT") else 30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if os.environ.get("LENIENT"):
                print(f"[{self} ignores {how.name}]", end=" ", flush=True)
                return
            raise Failed(f"{self} ignores {how.name}\n{self.tail()}") from None

    def freeze(self):
        """SIGSTOP, and waits until every thread is stopped: until the kernel stops it, a thread may still answer."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        until(f"SIGSTOP of {self}", lambda: is_stopped(self.process.pid))

    def thaw(self):
        os.killpg(self.process.pid, signal.SIGCONT)

    def files(self, prefix):
        """The files `prefix.ZXID` in the data directory, by zxid."""
        found = (self.folder / "data/version-2").glob(f"{prefix}.*")
        return dict(sorted((int(path.name.split(".")[1], 16), path) for path in found))

    def zxid(self):
        return int(re.search(r"^Zxid: (\S+)", self.word("srvr"), re.M).group(1), 16)

    def forget(self):
        """Deletes the server's data, except myid. On a busy machine a server may have been stopped before it had any."""
        if (folder := self.folder / "data/version-2").exists():
            shutil.rmtree(folder)

    def word(self, word):
        """The answer to a four-letter word, empty when there is none."""
        try:
            with socket.create_connection((self.host, self.port), timeout=5) as connection:
                connection.sendall(word.encode())
                answer = b""
                while part := connection.recv(65536):
                    answer += part
                return answer.decode()
        except OSError:
            return ""

    def mode(self):
        """`leader`, `follower`, `observer`, or nothing while it does not serve."""
        if self.process is not None and (code := self.process.poll()) is not None:
            raise Failed(f"{self} exited by itself with status {code}\n{self.tail()}")
        found = re.search(r"^Mode: (\w+)", self.word("srvr"), re.M) if self.process else None
        return found.group(1) if found else ""

    def figures(self):
        return dict(line.split("\t", 1) for line in self.word("mntr").splitlines() if "\t" in line)

    def tail(self, lines=12):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join("    | " + line[:300] for line in text.splitlines()[-lines:])

    def __repr__(self):
        return f"{self.number}{self.kind}"


class Ensemble:
    """Members with ids from 1. `kinds` has a letter for each (KINDS); those after a `+` are observers."""

    same_view = True  # Whether all members' files have the same addresses.

    def __init__(self, kinds, command, settings=()):
        self.kinds = kinds
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-ensemble-"))
        command = shlex.split(command)
        command[0] = str(pathlib.Path(shutil.which(command[0]) or command[0]).resolve())
        voters, _, observers = kinds.partition("+")
        flags = [line for line in settings if line.startswith(("readonlymode.", "zookeeper."))]  # Settings that exist only as -D properties.
        settings = [line for line in settings if line not in flags]
        self.members = [Member(self.folder, at + 1, kind, command, at >= len(voters), flags)
                        for at, kind in enumerate(voters + observers)]
        self.place()
        for member in self.members:
            if any(line.startswith("observerMasterPort") for line in settings):
                member.host = f"127.0.0.{member.number}"  # That port has the same number at all members.
                member.address = f"{member.host}:{member.port}"
        for member in self.members:
            (member.folder / "zoo.cfg").write_text("\n".join([
                f"dataDir={member.folder / 'data'}",
                f"clientPort={member.port}",
                f"clientPortAddress={member.host}",
                "tickTime=500",  # Sessions expire in multiples of it, so it bounds how long this takes.
                "initLimit=40",
                "syncLimit=20",
                "minSessionTimeout=1000",
                "maxSessionTimeout=60000",
                "4lw.commands.whitelist=*",
                "admin.enableServer=false",
                "extendedTypesEnabled=true",
                "autopurge.purgeInterval=0",
                *(["peerType=observer"] if member.observes else []),
                *settings,
                *(self.line(member, other) for other in self.members),
            ]) + "\n")

    def place(self):
        """Gives the members their addresses, before zoo.cfg is written; subclasses with a network of their own override it."""

    def line(self, viewer, other):
        """The line `server.N` for `other` in the zoo.cfg of `viewer`."""
        return other.line()

    @property
    def addresses(self):
        return [member.address for member in self.members]

    @property
    def voters(self):
        return [member for member in self.members if not member.observes]

    def running(self):
        return [member for member in self.members if member.process]

    def leader(self):
        """The member that is the leader, or None."""
        leaders = [member for member in self.running() if member.mode() == "leader"]
        return leaders[0] if len(leaders) == 1 else None

    def serves(self):
        """Whether all running members are in their roles, and one of them is the leader."""
        modes = [(member, member.mode()) for member in self.running()]
        wanted = lambda member: ["observer"] if member.observes else ["leader", "follower"]  # noqa: E731
        fits = all(mode in wanted(member) for member, mode in modes)
        return fits and sum(mode == "leader" for _, mode in modes) == 1

    def wait(self, what="an ensemble"):
        until(f"{what} of {self.running()}, modes {[member.mode() for member in self.running()]}", self.serves)

    def wait_for_quorum(self):
        """Waits until there is a leader; other members need not serve yet."""
        until(f"a leader of {self.running()}", self.leader)

    def start(self, *members):
        """Starts these members, or all that don't run, and waits until all serve."""
        for member in members or [member for member in self.members if not member.process]:
            member.launch()
        self.wait()

    def stop(self, *members, how=signal.SIGTERM):
        for member in members or self.running():
            member.end(how)

    def start_led_by(self, leader, write):
        """The first start, so that `leader` leads: a quorum in which it has the largest id starts first, the others afterwards."""
        needed = len(self.voters) // 2
        electors = [member for member in self.voters if member.number < leader.number][:needed]
        if len(electors) < needed:
            self.start()
            return self.make_lead(leader, write)
        self.start(leader, *electors)
        assert self.leader() is leader, f"{self.leader()} leads, not {leader}"
        self.start()

    def make_lead(self, leader, write):
        """Restarts all so that `leader` leads: it has a higher zxid than its electors. `write` writes at an address."""
        if self.leader() is leader:
            return
        others = [member for member in self.voters if member is not leader]
        unaware = others[:len(self.voters) // 2]
        self.stop(*unaware)
        self.wait()
        write(leader.address)
        self.stop()
        self.start(leader, *unaware)
        assert self.leader() is leader, f"{self.leader()} leads, not {leader}"
        self.start()

    def look_into(self, why):
        """Writes the servers' answers to four-letter words, and Java's stacks, to stuck.txt in their folders."""
        print(f"[stuck? {self.folder}: {why}]", end=" ", flush=True)
        for member in self.running():
            said = [f"==== {word}\n{member.word(word)}" for word in ("srvr", "cons", "dump", "mntr")]
            if member.kind != "o":
                said.append(subprocess.run(["jstack", str(member.process.pid)], capture_output=True, text=True).stdout)
            (member.folder / "stuck.txt").write_text("\n".join([why, *said]))

    def tails(self):
        return "\n".join(f"{member}:\n{member.tail()}" for member in self.members)

    def kill(self):
        for member in self.members:
            if member.process and member.process.poll() is None:
                os.killpg(member.process.pid, signal.SIGKILL)
                member.process.wait()
            member.process = None

    def remove(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
