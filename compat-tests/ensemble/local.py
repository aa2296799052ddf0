"""Local sessions, and read-only mode while there is no leader."""

import socket
import struct

import client as ops
from client import Client, MULTI
from members import Failed, until
from wire import Expired, Lost, buffer

LOCAL = ["localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"]
BOUND = ["localSessionsEnabled=true"]
ON_LOCAL_SESSION, NOT_READ_ONLY = -120, -119


class Reader(Client):
    """A client that accepts a read-only server; `read_only` says whether its server is read-only."""

    def connect_once(self, seconds):
        self.sent = self.received = getattr(self, "sent", 0)
        host, port = self.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=seconds)
        head = struct.pack(">iqiq", 0, self.zxid, self.timeout_ms, self.id)
        self.write(head + buffer(self.password) + b"\1")
        _, timeout_ms, session = struct.unpack_from(">iiq", answer := self.read())
        if timeout_ms <= 0:
            raise Expired(f"session {self.id:#x}")
        self.id, self.password, self.read_only = session, answer[20:36], answer[36] != 0


def figure(member, name):
    return int(member.figures()[f"zk_{name}"])


def locals_at(member, wanted):
    until(f"{wanted} local sessions at {member}", lambda: figure(member, "local_sessions") == wanted)


def again(c, address):
    """A client that reconnects with the session of `c`, without retries."""
    other = Client.__new__(Client)
    other.__dict__.update(c.__dict__, events=[], address=address, addresses=[address])
    del other.socket  # `c` still uses it.
    other.connect_once(5)
    return other


def expires_at(c, other, member):
    try:
        again(c, other.address)
    except Expired:
        return True
    except Lost:
        return False  # The other server's last zxid is lower than the client's.
    raise Failed(f"{other} knows a local session of {member}")


# rows: Q-94 C-36 C-37
def check_local(ensemble, arguments):
    """At every member: what a local session may do, that only its server knows it, and how it is upgraded to a global session."""
    globals_before = figure(ensemble.leader(), "global_sessions")
    for member, other in zip(ensemble.members, ensemble.members[1:] + ensemble.members[:1]):
        number = member.number
        c = Client([member.address], 5000)
        locals_at(member, 1)
        assert c.make(f"/l{number}")[0] == 0 and c.set(f"/l{number}", b"x") == 0
        c.sync()
        assert figure(ensemble.leader(), "global_sessions") == globals_before, "a local session must not become global"
        c = again(c, member.address)  # It can be resumed at its own server only.
        assert c.exists(f"/l{number}")
        until("refusal at another server", lambda: expires_at(c, other, member))
        # The upgrade comes among pipelined requests: answers keep their order, and the ephemeral is owned by the session.
        for name, flags in [("p", ops.PERSISTENT), ("e", ops.EPHEMERAL), ("q", ops.PERSISTENT)]:
            c.send_make(f"/l{number}/{name}", flags=flags)
        answers = [c.receive()[0] for _ in range(3)]
        assert answers == [0, 0, 0], answers
        assert c.get(f"/l{number}/e")[2][7] == c.id
        locals_at(member, 0)
        until("a global session", lambda: figure(ensemble.leader(), "global_sessions") == globals_before + 1)
        c.go_to(other.address)  # Every server knows a global session.
        c.close()
        until("the end of the global session", lambda: figure(ensemble.leader(), "global_sessions") == globals_before)
        multi(member)
        ends(member)
    check_outlive(ensemble)
    return "every member's"


def multi(member):
    c = Client([member.address], 5000)
    path = f"/multi{member.number}"
    error, errors = c.multi((1, c.create_body(path)), (1, c.create_body(path + "-e", flags=ops.EPHEMERAL)))
    assert (error, errors) == (0, [0, 0]), (error, errors)
    assert c.get(path + "-e")[2][7] == c.id
    c.close()


def ends(member):
    """A local session ends by closeSession after a pipelined write, and another by expiry."""
    c = Client([member.address], 5000)
    c.send_make(f"/end{member.number}")
    c.send(ops.CLOSE)
    assert [c.receive()[0], c.receive()[0]] == [0, 0]
    locals_at(member, 0)
    c = Client([member.address], 1000)
    locals_at(member, 1)
    locals_at(member, 0)
    try:
        again(c, member.address)
        raise Failed("a silent session did not expire")
    except Expired:
        pass


def check_outlive(ensemble):
    """Only for our servers: an election does not end local sessions. A Java server forgets them with its role."""
    ours = [member for member in ensemble.members if member.kind == "o" and member is not ensemble.leader()]
    there = [(member, Client([member.address], 20_000)) for member in ours]
    leader = ensemble.leader()
    ensemble.stop(leader)
    ensemble.start()
    for member, c in there:
        c = again(c, member.address)
        assert c.exists("/")
        c.close()


# rows: Q-94 C-37
def check_bound(ensemble, arguments):
    """Without upgrades, a local session can do everything but create ephemeral znodes."""
    for member in ensemble.members:
        c = Client([member.address], 5000)
        path = f"/b{member.number}"
        c.send_make(path)
        c.send_make(path + "/e", flags=ops.EPHEMERAL)
        c.send_make(path + "/p")
        answers = [c.receive()[0] for _ in range(3)]
        assert answers == [0, ON_LOCAL_SESSION, 0], answers
        assert sorted(c.names(path)) == ["p"]
        locals_at(member, 1)
        c.close()
    return "every member's"


READING = [*LOCAL, "readonlymode.enabled=true"]


# rows: Q-93 P-19 G-19 C-261
def check_reading(ensemble, arguments):
    """Each member in turn, without a quorum, serves read-only clients until there is a leader."""
    first = Client(ensemble.addresses)
    first.make("/r", b"read me")
    first.close()
    for member in ensemble.members[:3]:
        known = Client([member.address], 20_000)
        assert known.make("/known", flags=ops.EPHEMERAL)[0] == 0
        others = [other for other in ensemble.running() if other is not member]
        ensemble.stop(*others)
        until(f"{member} alone", lambda: "Mode: read-only" in member.word("srvr"), 60)
        assert member.word("isro") == "ro" and member.figures()["zk_server_state"] == "read-only"
        c = Reader([member.address], 5000)
        assert c.read_only
        assert c.get("/r", watch=True)[1] == b"read me" and "r" in c.names("/")
        for error in (c.make("/x")[0], c.set("/r", b"y"), c.delete("/r"), c.call(ops.SYNC, buffer(b"/"))[0],
                      c.call(MULTI, struct.pack(">ibi", -1, 1, -1))[0], c.make("/e", flags=ops.EPHEMERAL)[0]):
            assert error == NOT_READ_ONLY, error
        try:
            again(known, member.address)
            raise Failed(f"{member} in read-only mode resumed a global session for a client that may write")
        except (Lost, Expired, OSError):
            pass
        try:
            Client.connect_once(again_new(member), 5)
            raise Failed(f"{member} in read-only mode accepted a client that may write")
        except (Lost, OSError):
            pass
        if member.kind == "o":
            going_on = Reader.__new__(Reader)
            going_on.__dict__.update(known.__dict__)  # The same session, as a client that accepts a read-only server.
            going_on.connect_once(5)
            assert going_on.read_only and going_on.id == known.id and going_on.exists("/known")
            assert going_on.delete("/known") == NOT_READ_ONLY
            going_on.socket.close()
        closing = Reader([member.address], 5000)
        closing.close()
        ensemble.start()
        try:
            c.exists("/r")
            raise Failed("a read-only connection stayed open after the election")
        except (Lost, OSError):
            pass
        known.go_to(member.address)
        assert known.delete("/known") == 0
        known.close()
    return "three members"


def again_new(member):
    c = Client.__new__(Client)
    c.__dict__.update(address=member.address, addresses=[member.address], at=0, events=[], id=0, password=bytes(16), zxid=0,
                      timeout_ms=5000)
    return c
