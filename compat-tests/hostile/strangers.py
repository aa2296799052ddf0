"""Strangers that speak the protocols between servers: packets of learners, notifications of elections.

`Learner` connects to a learner port, with any server id and any acceptedEpoch.
"""

import socket
import struct
import time

from voter import FORM, NOTIFICATION
from wire import buffer

REQUEST, ACK, PING, NEW_LEADER, FOLLOWER_INFO, UP_TO_DATE, SNAP, OBSERVER_INFO, LEADER_INFO, ACK_EPOCH = (
    1, 3, 5, 10, 11, 12, 15, 16, 17, 18)
SIGNATURE = buffer(b"BenWasHere")  # The end of a SNAP.
CREATE_SESSION = -10
PATIENCE = 5  # Seconds.


def packet_head(kind, data_len, zxid=0):
    return struct.pack(">iqi", kind, zxid, data_len)


def packet(kind, zxid=0, data=None, identities=None):
    """A whole packet. `identities`: authentication ids, as pairs of scheme and id."""
    body = packet_head(kind, -1 if data is None else len(data), zxid) + (data or b"")
    if identities is None:
        return body + struct.pack(">i", -1)
    return body + struct.pack(">i", len(identities)) + b"".join(
        buffer(scheme.encode()) + buffer(name.encode()) for scheme, name in identities)


def hello(kind, server_id, accepted=0):
    """A whole FOLLOWERINFO or OBSERVERINFO, without authentication ids."""
    return packet(kind, accepted << 32, struct.pack(">qiq", server_id, 0x10000, 0))


def request(session, xid, kind, body, identities=None):
    """A client's request, as a learner forwards it."""
    return packet(REQUEST, 0, struct.pack(">qii", session, xid, kind) + body, identities)


def quorum_port(member, port=None):
    return socket.create_connection((member.host, port or member.quorum_port), timeout=10)


class Closed(Exception):
    """The server has closed the connection."""


class Learner:
    def __init__(self, member, number, kind=FOLLOWER_INFO, accepted=0, port=None, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((member.host, port or member.quorum_port))
        self.data, self.epoch = b"", None
        self.send(hello(kind, number, accepted))

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (ConnectionError, BrokenPipeError) as error:
            raise Closed(str(error)) from None

    def more(self):
        try:
            part = self.socket.recv(1 << 18)
        except ConnectionError as error:
            raise Closed(str(error)) from None
        if not part:
            raise Closed("end of stream")
        self.data += part

    def take(self, count):
        while len(self.data) < count:
            self.more()
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def receive(self):
        """Type, zxid and data of the next packet; the tree after SNAP is skipped."""
        kind, zxid, length = struct.unpack(">iqi", self.take(16))
        data = self.take(max(length, 0))
        (count,) = struct.unpack(">i", self.take(4))
        for _ in range(2 * max(count, 0)):
            self.take(struct.unpack(">i", self.take(4))[0])
        if kind == SNAP:
            while SIGNATURE not in self.data:
                self.data = self.data[-len(SIGNATURE):] if len(self.data) > 1 << 22 else self.data
                self.more()
            self.data = self.data.partition(SIGNATURE)[2]
        return kind, zxid, data

    def until(self, kind):
        deadline = time.monotonic() + PATIENCE
        while (found := self.receive())[0] != kind:
            if deadline < time.monotonic():
                raise TimeoutError(f"no packet of type {kind}")
        return found

    def promise(self, last=0):
        """Receives LEADERINFO and answers with ACKEPOCH, with `last` as the last zxid."""
        _, zxid, _ = self.until(LEADER_INFO)
        self.epoch = zxid >> 32
        self.send(packet(ACK_EPOCH, last, struct.pack(">i", -1)))

    def synchronise(self, last=0):
        """The whole synchronisation, through UPTODATE."""
        self.promise(last)
        self.until(NEW_LEADER)
        self.send(packet(ACK, self.epoch << 32))
        self.until(UP_TO_DATE)
        self.send(packet(ACK, self.epoch << 32))
        return self

    def is_closed(self, seconds):
        """Whether the server closes the connection within that time; answers PING meanwhile."""
        deadline = time.monotonic() + seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                self.socket.settimeout(left)
                kind, zxid, _ = self.receive()
                if kind == PING:
                    self.send(packet(PING, zxid, b""))
            return False
        except TimeoutError:
            return False
        except (Closed, OSError):
            return True

    def press(self, data, seconds, watch=lambda: None):
        """Sends `data` again and again for that time, or until the server closes; `watch` is called after each try.

        Returns the bytes taken, and whether the server closed. The socket's timeout is how long a try may wait."""
        taken, deadline = 0, time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                taken += self.socket.send(data[taken % len(data):])
            except TimeoutError:
                pass
            except OSError:
                return taken, True
            finally:
                watch()
        return taken, False

    def close(self):
        self.socket.close()


def election_hello(number, address=b"127.0.0.1:9999"):
    return struct.pack(">qqi", -65536, number, len(address)) + address


def vote(state, leader, zxid, round_, epoch):
    """A whole election notification, in the format of release 3.4."""
    said = NOTIFICATION.pack(state, leader, zxid, round_, epoch, FORM)
    return struct.pack(">i", len(said)) + said


