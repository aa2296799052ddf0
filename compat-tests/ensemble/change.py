"""Reconfigurations: members join, leave, change roles and ports, and the leader is removed, all of it under load."""

import re
import struct
import time

from client import STAT, Client
from load import Load
from members import Failed, Member, free_port, until
from wire import Lost, buffer

RECONFIG = 16
CONFIG = "/zookeeper/config"
SETTINGS = ["reconfigEnabled=true", "skipACL=yes"]  # Permission to reconfigure is tested elsewhere.
BAD_ARGUMENTS, MARSHALLING, NO_QUORUM, BAD_VERSION = -8, -5, -13, -103


def text(value):
    return struct.pack(">i", -1) if value is None else buffer(value.encode())


def reconfig(c, joining=None, leaving=None, members=None, version=-1):
    """The error, and the configuration that is in force afterwards."""
    error, body = c.call(RECONFIG, text(joining) + text(leaving) + text(members) + struct.pack(">q", version))
    if error:
        return error, None
    (length,) = struct.unpack_from(">i", body)
    STAT.unpack_from(body, 4 + length)
    return 0, body[4:4 + length].decode()


def config(c):
    error, data, _ = c.get(CONFIG)
    assert error == 0, f"get {CONFIG}: {error}"
    return data.decode()


def version_of(found):
    return int(re.search(r"^version=([0-9a-f]+)$", found, re.M).group(1), 16)


def line(member, role=None, client=None):
    role = role or ("observer" if member.observes else "participant")
    return (f"server.{member.number}={member.host}:{member.quorum_port}:{member.election_port}:{role}"
            f";{member.host}:{client or member.port}")


def joiner(ensemble, kind):
    """A server that is to join: its zoo.cfg names the members and itself, as ZooKeeper's documentation says."""
    number = max(member.number for member in ensemble.members) + 1
    member = Member(ensemble.folder, number, kind, ensemble.members[0].own_command, False)
    if ensemble.members[-1].host != member.host:  # Each has a host of its own.
        member.host = f"127.0.0.{number}"
        member.address = f"{member.host}:{member.port}"
    settings = (ensemble.members[0].folder / "zoo.cfg").read_text().splitlines()
    dynamic = re.search(r"^dynamicConfigFile=(.*)$", "\n".join(settings), re.M).group(1)
    kept = [line for line in settings if not re.match(r"dynamicConfigFile|dataDir|clientPort", line)]
    with open(dynamic) as servers:
        kept += [line for line in servers.read().splitlines() if line.startswith("server.")]
    kept += [f"dataDir={member.folder / 'data'}", line(member)]
    (member.folder / "zoo.cfg").write_text("\n".join(kept) + "\n")
    return member


class Change:
    """Reconfigures an ensemble step by step, and checks every member after each step."""

    def __init__(self, ensemble, load):
        self.ensemble, self.load, self.version, self.steps = ensemble, load, 0, []

    def ask(self, through, **what):
        """One reconfiguration through a member; returns its answer."""
        c = Client([through.address])
        try:
            return reconfig(c, **what)
        except Lost:
            return None, None  # The leader may be the member that is removed.
        finally:
            c.socket.close()

    def refused(self, wanted, **what):
        for member in self.ensemble.running():
            error, _ = self.ask(member, **what)
            assert error == wanted, f"{what} through {member}: {error} instead of {wanted}"

    def done(self, name, through, **what):
        """Reconfigures, and waits until every member shows the configuration and has it in its files. A member of ours answers
        also when the reconfiguration ends its role."""
        since = time.monotonic()
        error, found = self.ask(through, **what)
        assert error == 0 or (error is None and through.kind != "o"), f"{name} through {through}: {error}"
        members = self.ensemble.running()
        shown = until(f"{name}: the same configuration at {members}", lambda: self.shown(members, found))
        assert self.version < version_of(shown), f"{name}: {shown} is not newer than {self.version:x}"
        self.version = version_of(shown)
        self.ensemble.wait(name)
        self.load.progress()
        until(f"{name}: files of {members}", lambda: all(self.is_kept(member, shown) for member in members))
        self.steps.append(f"{name} {(time.monotonic() - since) * 1000:.0f} ms")
        return shown

    def shown(self, members, wanted, least=None):
        """The configuration all members show: `wanted` if given, otherwise any of version `least` or later."""
        least, found = least or self.version + 1, set()
        for member in members:
            try:
                c = Client([member.address])
                c.sync()
                found.add(config(c))
                c.close()
            except (Lost, Failed):
                return None
        if len(found) != 1 or (wanted and found != {wanted}) or version_of(min(found)) < least:
            return None
        return found.pop()

    def is_kept(self, member, shown):
        """Whether the member's files have this configuration for the next start, and no proposed one."""
        static = (member.folder / "zoo.cfg").read_text()
        named = re.search(r"^dynamicConfigFile=(.*)$", static, re.M)
        if not named or not named.group(1).endswith(f".dynamic.{self.version:x}"):
            return False
        if re.search(r"^server\.", static, re.M) or (member.folder / "zoo.cfg.dynamic.next").exists():
            return False
        with open(named.group(1)) as servers:
            return sorted(servers.read().split()) == sorted(shown.split()[:-1])


def check(ensemble, arguments):
    c = Client(ensemble.addresses)
    first = until("a configuration with a version", lambda: (found := config(c)) and version_of(found) and found)
    assert version_of(first) & 0xFFFFFFFF == 0, f"the first configuration's version must be its epoch's: {first}"
    c.close()
    with Load(ensemble) as load:
        change = Change(ensemble, load)
        change.version = version_of(first)
        until("the first configuration in the files of all members", lambda: all(change.is_kept(member, first) for member in ensemble.members))
        assert all((member.folder / "zoo.cfg.bak").exists() for member in ensemble.members)
        every_step(ensemble, change)
    return f"{', '.join(change.steps)}; {load.words()}"


ALONE = [*SETTINGS, "standaloneEnabled=false"]


def grow(ensemble, arguments):
    """An ensemble of one grows to three members of both kinds, and shrinks to one again: the member that joined last."""
    with Load(ensemble) as load:
        change = Change(ensemble, load)
        for kind in "jo" if ensemble.members[0].kind == "o" else "oo":
            member = joiner(ensemble, kind)
            ensemble.members.append(member)
            ensemble.start(member)
            change.done("join", member, joining=line(member))
            load.addresses.append(member.address)  # For clients whose server leaves.
        for worker in load.workers:
            worker.client.addresses = list(load.addresses)
        for member in ensemble.members[:2]:
            change.done("leave", ensemble.members[-1], leaving=str(member.number))
            ensemble.members.remove(member)
            ensemble.stop(member)
            load.progress()
        ensemble.stop()
        ensemble.start()
        load.progress()
    return f"{', '.join(change.steps)}; {load.words()}"


def every_step(ensemble, change):
    one, two, three = ensemble.members[:3]
    leader = ensemble.leader()
    follower = next(member for member in (one, two, three) if member is not leader)

    nobody = "server.7=127.0.0.1:1:2;3,server.8=127.0.0.1:4:5;6,server.9=127.0.0.1:7:8;9"
    change.refused(NO_QUORUM, joining=nobody, leaving="1,2,3")
    change.refused(BAD_VERSION, leaving="1", version=5)
    change.refused(BAD_ARGUMENTS, joining="server.4=127.0.0.1:1:2")
    change.refused(BAD_ARGUMENTS, leaving="1,2")
    change.refused(MARSHALLING, leaving="x")
    change.refused(BAD_ARGUMENTS, members="servers.1=127.0.0.1:1:2;3")
    change.refused(BAD_ARGUMENTS, members="")
    change.refused(BAD_ARGUMENTS, joining="server.4=127.0.0.1:1:2|127.0.0.2:1:2;3")
    change.refused(MARSHALLING, members="server.1=127.0.0.1:1:2,server.2=127.0.0.1:3:4:observer")
    change.refused(MARSHALLING, members="server.1=127.0.0.1:1:2,server.2=127.0.0.1:3:4,group.1=1:x")
    change.refused(MARSHALLING, joining="server.x=127.0.0.1:1:2;3")

    watcher = Client([follower.address])
    watcher.get(CONFIG, watch=True)
    four = joiner(ensemble, follower.kind)
    ensemble.members.append(four)
    ensemble.start(four)
    change.done("join", follower, joining=line(four), version=change.version)
    watcher.wait_event(3, CONFIG)
    watcher.socket.close()

    follower.observes = True
    change.done("observe", leader, joining=line(follower))
    follower.observes = False
    change.done("vote", follower, joining=line(follower))

    follower.observes = True
    change.done("observe itself", follower, joining=line(follower))
    follower.observes = False
    change.done("vote itself", follower, joining=line(follower))

    move_client_port(ensemble, change, follower, leader)

    # The leader becomes an observer: the reconfiguration names another leader, which leads without an election.
    leader.observes = True
    change.done("leader observes", leader, joining=line(leader))
    assert ensemble.leader() is not leader
    leader.observes = False
    change.done("leader votes", leader, joining=line(leader))

    # A removed member goes on as a follower that does not vote, as in Java.
    leader = ensemble.leader()
    gone = next(member for member in ensemble.members if member is not leader)
    change.done("leave", gone, leaving=str(gone.number))
    ensemble.stop(gone)
    ensemble.members.remove(gone)
    leader = ensemble.leader()
    change.done("all members named at once", leader, members=",".join(line(member) for member in ensemble.members))

    ensemble.stop()
    ensemble.start()
    shown = until("the same configuration after a restart", lambda: change.shown(ensemble.members, None, change.version))
    assert version_of(shown) == change.version


def move_client_port(ensemble, change, member, leader):
    """A running member's client port moves; existing connections stay."""
    there = Client([member.address])
    before, moved = member.port, free_port()
    error, _ = change.ask(leader, joining=line(member, client=moved))
    assert error == 0, f"move of a client port: {error}"
    member.port, member.address = moved, f"127.0.0.1:{moved}"
    ensemble.wait("the new port")
    assert there.exists("/"), "the existing connection must stay"
    there.close()
    try:
        Client.connect_once(there, 1)
        raise Failed(f"port {before} still serves")
    except (Lost, OSError):
        pass
    change.version = version_of(until("a configuration with the new port", lambda: change.shown(ensemble.running(), None)))
    change.load.progress()
    change.steps.append("client port")
