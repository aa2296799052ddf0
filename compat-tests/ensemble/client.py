"""A client that may move from server to server, with every kind of write."""

import struct
import time

import wire
from members import Failed
from wire import OPEN_ACL, Expired, Lost, Session, buffer

CREATE2, CREATE_CONTAINER, CREATE_TTL, DELETE, EXISTS, GET, SET = 15, 19, 21, 2, 3, 4, 5
GET_ACL, SET_ACL, SYNC, PING, CHILDREN2, CHECK, MULTI, CLOSE, AUTH = 6, 7, 9, 11, 12, 13, 14, -11, 100
PERSISTENT, EPHEMERAL, SEQUENTIAL, EPHEMERAL_SEQUENTIAL, CONTAINER, TTL, TTL_SEQUENTIAL = range(7)
NO_NODE, NO_AUTH, BAD_VERSION, NO_CHILDREN, EXISTS_ALREADY, NOT_EMPTY = -101, -102, -103, -108, -110, -111
BAD_ACL, MOVED, BAD_ARGUMENTS = -114, -118, -8
EVENT_XID, PING_XID, AUTH_XID = -1, -2, -4
STAT = struct.Struct(">qqqqiiiqiiq")  # czxid mzxid ctime mtime version cversion aversion owner length children pzxid.


def acl(*entries):
    """`entries`: (permissions, scheme, id)."""
    return struct.pack(">i", len(entries)) + b"".join(
        struct.pack(">i", bits) + buffer(scheme.encode()) + buffer(name.encode()) for bits, scheme, name in entries)


class Client(Session):
    """Connects to the next server whenever a connection ends; an outstanding request then raises `Lost`.

    `events` holds (type, path) of watch events.
    """

    newest = 0  # The zxid of the newest transaction that a reply has named.

    def __init__(self, addresses, timeout_ms=30_000, first=0):
        self.addresses, self.at = list(addresses), first
        self.events = []
        super().__init__(self.addresses[first % len(addresses)], timeout_ms)

    def connect(self):
        deadline, patience = time.monotonic() + wire.PATIENCE, wire.PATIENCE
        while True:
            self.address = self.addresses[self.at % len(self.addresses)]
            try:
                return self.connect_once(patience / 10)
            except (OSError, Lost) as error:
                if deadline < time.monotonic():
                    raise Failed(f"no server accepted session {self.id:#x} at zxid {self.zxid:#x}: {error}") from None
                self.at += 1
                time.sleep(0.03)

    def dial(self, host, port, seconds):
        """A socket; clients over TLS override it."""
        return wire.socket.create_connection((host, port), timeout=seconds)

    def connect_once(self, seconds):
        # Xids continue across connections, as in Java's client: a server matches commits to requests by session and xid.
        self.sent = self.received = getattr(self, "sent", 0)
        host, port = self.address.rsplit(":", 1)
        if old := getattr(self, "socket", None):
            old.close()
        self.socket = self.dial(host, int(port), seconds)
        self.socket.setsockopt(wire.socket.IPPROTO_TCP, wire.socket.TCP_NODELAY, 1)
        head = struct.pack(">iqiq", 0, self.zxid, self.timeout_ms, self.id)
        self.write(head + buffer(self.password) + b"\0")
        _, timeout_ms, session = struct.unpack_from(">iiq", answer := self.read())
        if timeout_ms <= 0 or self.id not in (0, session):
            raise Expired(f"session {self.id:#x} at {self.address}")
        self.socket.settimeout(wire.PATIENCE)
        self.id, self.password, self.granted_ms = session, answer[20:36], timeout_ms

    def go_to(self, address):
        """Moves the session to another server."""
        self.addresses = [address]
        self.connect()

    def receive(self):
        while True:
            reply = self.read()
            xid, zxid, error = struct.unpack_from(">iqi", reply)
            if xid == EVENT_XID:
                kind, _, length = struct.unpack_from(">iii", reply, 16)
                self.events.append((kind, reply[28:28 + length].decode()))
                continue
            if xid in (PING_XID, AUTH_XID):
                continue
            self.received += 1
            assert xid == self.received, f"reply {xid} instead of {self.received}"
            if zxid > 0:
                # A new Java leader names its epoch with counter 0, which is no transaction. Once another leads, our servers name their last one.
                if self.zxid & 0xffffffff:
                    self.newest = self.zxid
                assert self.newest <= zxid, f"{self.address} went back from {self.newest:#x} to {zxid:#x}"
                self.zxid = zxid
            return error, reply[16:]

    def ping(self):
        self.write(struct.pack(">ii", PING_XID, PING))

    def auth(self, scheme, text):
        self.write(struct.pack(">iii", AUTH_XID, AUTH, 0) + buffer(scheme.encode()) + buffer(text.encode()))

    @staticmethod
    def create_body(path, data=b"", flags=PERSISTENT, lists=OPEN_ACL, ttl_ms=None):
        body = buffer(path.encode()) + buffer(data) + lists + struct.pack(">i", flags)
        return body if ttl_ms is None else body + struct.pack(">q", ttl_ms)

    def send_make(self, path, data=b"", flags=PERSISTENT, lists=OPEN_ACL, ttl_ms=None):
        kind = CREATE_CONTAINER if flags == CONTAINER else CREATE2 if ttl_ms is None else CREATE_TTL
        self.send(kind, self.create_body(path, data, flags, lists, ttl_ms))

    def make(self, *arguments, **more):
        """Creates a znode; returns the error and the path."""
        self.send_make(*arguments, **more)
        error, body = self.receive()
        if error:
            return error, None
        (length,) = struct.unpack_from(">i", body)
        return 0, body[4:4 + length].decode()

    def set(self, path, data, version=-1):
        return self.call(SET, buffer(path.encode()) + buffer(data) + struct.pack(">i", version))[0]

    def send_delete(self, path, version=-1):
        self.send(DELETE, buffer(path.encode()) + struct.pack(">i", version))

    def delete(self, path, version=-1):
        self.send_delete(path, version)
        return self.receive()[0]

    def set_acl(self, path, lists, version=-1):
        return self.call(SET_ACL, buffer(path.encode()) + lists + struct.pack(">i", version))[0]

    def exists(self, path, watch=False):
        return self.call(EXISTS, buffer(path.encode()) + bytes([watch]))[0] == 0

    def get(self, path, watch=False):
        """The error; data, and the stat as a tuple."""
        error, body = self.call(GET, buffer(path.encode()) + bytes([watch]))
        if error:
            return error, None, None
        (length,) = struct.unpack_from(">i", body)
        return 0, body[4:4 + max(length, 0)], STAT.unpack_from(body, 4 + max(length, 0))

    def names(self, path, watch=False):
        error, body = self.call(CHILDREN2, buffer(path.encode()) + bytes([watch]))
        assert error == 0, f"getChildren {path}: {error}"
        return names_of(body)

    def sync(self, path="/"):
        error, _ = self.call(SYNC, buffer(path.encode()))
        assert error == 0, f"sync at {self.address}: {error}"

    def multi(self, *operations):
        """`operations`: (opcode, body). Returns the multi's error, and one for each operation."""
        body = b"".join(struct.pack(">ibi", code, 0, -1) + part for code, part in operations)
        error, answer = self.call(MULTI, body + struct.pack(">ibi", -1, 1, -1))
        errors, at = [], 0
        while at < len(answer):
            kind, done, code = struct.unpack_from(">ibi", answer, at)
            at += 9
            if done:
                break
            if kind == -1:
                errors.append(struct.unpack_from(">i", answer, at)[0])
                at += 4
                continue
            errors.append(code)
            if kind in (1, 15):
                at += 4 + struct.unpack_from(">i", answer, at)[0]
            if kind in (5, 15):
                at += STAT.size
        return error, errors

    def wait_event(self, kind, path):
        """Waits for a watch event; sends requests meanwhile, because this client reads events only together with replies."""
        deadline = time.monotonic() + 20
        while (kind, path) not in self.events:
            assert time.monotonic() < deadline, f"{self.address} has not sent event {(kind, path)}: {self.events}"
            self.exists("/")
            time.sleep(0.01)
        self.events.remove((kind, path))


class Once(Client):
    """One session at one server, without retries and not connected at first: call `connect_once`, then `leave`."""

    def __init__(self, address):
        self.addresses, self.address, self.at, self.events, self.socket = [address], address, 0, [], None
        self.timeout_ms, self.id, self.password, self.zxid, self.sent, self.received = 10_000, 0, bytes(16), 0, 0, 0

    def leave(self):
        """Closes the socket without closeSession: the session expires."""
        if self.socket:
            self.socket.close()


def names_of(body):
    (count,), at, names = struct.unpack_from(">i", body), 4, []
    for _ in range(count):
        (length,) = struct.unpack_from(">i", body, at)
        names.append(body[at + 4:at + 4 + length].decode())
        at += 4 + length
    return names


def tree(client):
    """Every znode with data, stat and ACL, as a client sees them."""
    found, level = {}, ["/"]
    while level:
        below = []
        for batch in (level[at:at + 100] for at in range(0, len(level), 100)):
            for path in batch:
                for kind in (GET, GET_ACL, CHILDREN2):
                    client.send(kind, buffer(path.encode()) + (b"" if kind == GET_ACL else b"\0"))
            for path in batch:
                (error, data), (_, lists), (_, names) = (client.receive() for _ in range(3))
                if error == NO_NODE:
                    continue
                found[path] = (error, data, lists)
                if error == 0 or names:
                    below += [f"{path.rstrip('/')}/{name}" for name in (names_of(names) if names else [])]
        level = below
    return found
