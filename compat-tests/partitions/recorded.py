"""A session whose calls are all recorded. It moves away from a silent server, as ZooKeeper's own clients do."""

import struct
import time

import client as ops
from client import Client
from history import Op
from members import Failed
from wire import SET, Expired, Lost, buffer

SILENT_SECONDS = 1.3  # Without an answer for so long, the client connects to the next server.
DIAL_SECONDS = 0.7
GIVE_UP_SECONDS = 60  # A bound against hanging, not an expectation.
SET_WATCHES, SET_WATCHES_XID, EXPIRED_ERROR = 101, -8, -112


class Recorded(Client):
    """`records` grows by an `Op` for each call, event and change of the session, in the order in which this client saw
    them. Calls return their record; a record without a reply is `unsure`, and the session has then moved to another server."""

    def __init__(self, name, cluster, timeout_ms, first=0):
        self.name, self.cluster, self.records = name, cluster, []
        self.line, self.member, self.heard, self.expired = 0, 0, 0.0, False
        self.watching, self.closing = {}, False  # (path, what) to zxid.
        super().__init__(cluster.addresses, timeout_ms, first)
        self.note("opened")

    def note(self, what):
        now = time.monotonic()
        self.records.append(Op(self.name, "session", begin=now, end=now, error=0, data=f"{what} {self.id:#x}", member=self.member,
                               line=self.line))

    def connect(self):
        """Connects to the next server that accepts the session, and sets again the watches that have not fired yet."""
        give_up = time.monotonic() + GIVE_UP_SECONDS
        while True:
            self.address = self.addresses[self.at % len(self.addresses)]
            self.member = self.cluster.members[self.at % len(self.addresses)].number
            try:
                self.connect_once(DIAL_SECONDS)
                self.socket.settimeout(SILENT_SECONDS)
                self.line, self.heard = self.line + 1, time.monotonic()
                return self.watch_again() if self.watching else None
            except Expired:
                self.expired = True
                silent = time.monotonic() - self.heard
                self.note(f"expired, last answer {silent * 1000:.0f} ms before, timeout {self.timeout_ms} ms:")
                raise
            except (OSError, Lost) as error:
                if give_up < time.monotonic():
                    raise Failed(f"{self.name}: no server accepted session {self.id:#x}: {error}") from None
                self.at += 1
                time.sleep(0.03)

    def watch_again(self):
        data = [path for path, what in self.watching if what == "data"]
        there = [path for path, what in self.watching if what == "exists"]
        below = [path for path, what in self.watching if what == "children"]
        lists = b"".join(struct.pack(">i", len(paths)) + b"".join(buffer(path.encode()) for path in paths)
                         for paths in (data, there, below))
        self.write(struct.pack(">iiq", SET_WATCHES_XID, SET_WATCHES, self.zxid) + lists)
        while True:
            reply = self.read()
            if struct.unpack_from(">i", reply)[0] == SET_WATCHES_XID:
                return
            self.take_event(reply)

    def move(self):
        self.at += 1
        self.connect()
        self.note("moved")

    def take_event(self, reply):
        xid, _, _, kind, _, length = struct.unpack_from(">iqiiii", reply)
        assert xid == ops.EVENT_XID, f"{self.name}: reply {xid} without a request"
        path, now = reply[28:28 + length].decode(), time.monotonic()
        self.records.append(Op(self.name, "event", path, now, now, 0, None, kind, member=self.member, line=self.line))
        for what in ("children",) if kind == 4 else ("data", "exists") if kind != 2 else ("data", "exists", "children"):
            self.watching.pop((path, what), None)

    def receive(self):
        while True:
            reply = self.read()
            xid, zxid, error = struct.unpack_from(">iqi", reply)
            self.heard = time.monotonic()
            if xid == ops.EVENT_XID:
                self.take_event(reply)
                continue
            if xid == ops.PING_XID:
                continue
            self.received += 1
            assert xid == self.received, f"{self.name}: reply {xid} instead of {self.received}"
            if error == ops.MOVED:
                raise Lost("this server does not know yet that the session has moved here")
            if error == EXPIRED_ERROR:
                raise Lost("SessionExpired")  # The next connect shows whether that is so.
            self.zxid, self.reply_zxid = max(self.zxid, zxid), zxid
            return error, reply[16:]

    def run(self, *plans):
        """Pipelined calls. Each plan: (Op, requests to send, function that reads the last reply)."""
        records = [op for op, _, _ in plans]
        for op in records:
            op.client, op.begin, op.member, op.line = self.name, time.monotonic(), self.member, self.line
        answered = 0
        try:
            for _, bodies, _ in plans:
                for kind, body in bodies:
                    self.send(kind, body)
            for op, bodies, take in plans:
                for left in reversed(range(len(bodies))):
                    error, body = self.receive()
                    assert error == 0 or not left, f"{self.name}: {op.words()}: {error} before it"
                op.end, op.error, op.zxid = time.monotonic(), error, self.reply_zxid
                if take:
                    take(op, error, body)
                self.records.append(op)
                answered += 1
        except (Lost, OSError):
            self.records += records[answered:]
            self.move()
        return records

    def one(self, *plan):
        return self.run(plan)[0]

    def plan_set(self, path, data, version=-1, **more):
        body = buffer(path.encode()) + buffer(data.encode()) + struct.pack(">i", version)
        return Op(self.name, "set", path, data=data, version=version, **more), [(SET, body)], None

    def plan_make(self, path, data, flags=ops.PERSISTENT, **more):
        def take(op, error, body):
            if error == 0:
                op.path = body[4:4 + struct.unpack_from(">i", body)[0]].decode()

        body = self.create_body(path, data.encode(), flags)
        return Op(self.name, "make", path, data=data, **more), [(ops.CREATE2, body)], take

    def plan_drop(self, path, version=-1, **more):
        body = buffer(path.encode()) + struct.pack(">i", version)
        return Op(self.name, "drop", path, version=version, **more), [(ops.DELETE, body)], None

    def plan_read(self, path, kind="read", watch="", **more):
        """`kind` is one of `READS`; a fence is a write of this client's own znode /fence-NAME."""
        def take(op, error, body):
            if error == 0:
                (length,) = struct.unpack_from(">i", body)
                stat = ops.STAT.unpack_from(body, 4 + max(length, 0))
                op.data, op.version, op.mzxid = body[4:4 + max(length, 0)].decode(), stat[4], stat[1]
            if watch:
                # getData of a missing znode sets no watch.
                op.watch = watch if error == 0 else ""
                if op.watch:
                    self.watching[path, "data"] = op.zxid

        fence = self.plan_set(f"/fence-{self.name}", "f")[1]
        before = {"read": [], "sync-read": [(ops.SYNC, buffer(path.encode()))], "fenced-read": fence}[kind]
        return Op(self.name, kind, path, **more), [*before, (ops.GET, buffer(path.encode()) + bytes([bool(watch)]))], take

    def plan_exists(self, path):
        """exists with a watch, which is set whether the znode exists or not."""
        def take(op, error, body):
            op.watch = "data"
            self.watching[path, "data" if error == 0 else "exists"] = op.zxid
            if error == 0:
                stat = ops.STAT.unpack_from(body)
                op.version, op.mzxid = stat[4], stat[1]

        return Op(self.name, "exists", path), [(ops.EXISTS, buffer(path.encode()) + b"\1")], take

    def plan_list(self, path, watch=""):
        def take(op, error, body):
            if error == 0:
                names = ops.names_of(body)
                op.data, op.mzxid = " ".join(sorted(names)), ops.STAT.unpack_from(body, len(body) - ops.STAT.size)[10]
                if watch:
                    op.watch, self.watching[path, "children"] = watch, op.zxid

        return Op(self.name, "list", path), [(ops.CHILDREN2, buffer(path.encode()) + bytes([bool(watch)]))], take

    def end(self):
        """Closes the session, with retries on lost connections."""
        while True:
            try:
                self.close()
                return self.note("closed")
            except (Lost, OSError):
                try:
                    self.at += 1
                    self.connect()
                except Expired:
                    self.records.pop()  # The earlier closeSession was carried out.
                    return self.note("closed")
