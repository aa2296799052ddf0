"""A client that records what a server answers, and the bytes of requests."""

import socket
import struct

from wire import OPEN_ACL, buffer

AUTH, PING, SYNC, GET_ACL, SET_ACL, WHO_AM_I, SASL = 100, 11, 9, 6, 7, 107, 102
PATIENCE = 20


class Ear:
    """A client connection that records the answers in `heard`."""

    def __init__(self, server, secured=None):
        """`secured`: begins TLS on a socket, which is one to the server's secure port then."""
        self.socket = socket.create_connection(("127.0.0.1", server.secure if secured else server.port), timeout=PATIENCE)
        if secured:
            self.socket = secured(self.socket)
        self.id, self.password, self.heard = 0, bytes(16), []

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                return None
            data += part
        return data

    def frame(self):
        try:
            head = self.exactly(4)
            return head and self.exactly(struct.unpack(">i", head)[0])
        except OSError:
            return None

    def hello(self, session=0, password=bytes(16)):
        """Sends a connect request; returns whether there is a session."""
        self.socket.sendall(buffer(struct.pack(">iqiq", 0, 0, 10_000, session) + buffer(password) + b"\0"))
        answer = self.frame()
        if answer is None:
            return False
        self.id, self.password = struct.unpack_from(">q", answer, 8)[0], answer[20:36]
        return self.id != 0

    def send(self, xid, kind, body=b""):
        self.socket.sendall(buffer(struct.pack(">ii", xid, kind) + body))

    def hear(self, shown=lambda body: body.hex()):
        frame = self.frame()
        if frame is None:
            self.heard.append("end")
            return self
        xid, zxid, error = struct.unpack_from(">iqi", frame)
        self.heard.append((xid, zxid, error, shown(frame[16:])))
        return self

    def ask(self, xid, kind, body=b"", shown=lambda body: body.hex()):
        self.send(xid, kind, body)
        return self.hear(shown)

    def show(self, scheme, proof):
        return self.ask(-4, AUTH, struct.pack(">i", 0) + buffer(scheme.encode()) + buffer(proof))


def ear(server):
    made = Ear(server)
    assert made.hello(), "a session"
    return made


def path(name):
    return buffer(name.encode())


def acl(*entries):
    packed = [struct.pack(">i", perms) + path(scheme) + path(who) for perms, scheme, who in entries]
    return struct.pack(">i", len(entries)) + b"".join(packed)


def create(name, data=b"", who=OPEN_ACL):
    return path(name) + buffer(data) + who + struct.pack(">i", 0)


def no_stat(body):
    """An ACL or data without the stat after it, which contains times."""
    return body[:-68].hex()


def identities(body):
    """The ids in the answer to whoAmI, sorted: Java keeps them in a set without an order."""
    if not body:
        return []
    (count,), at, texts = struct.unpack_from(">i", body), 4, []
    for _ in range(2 * count):
        (length,) = struct.unpack_from(">i", body, at)
        texts.append(body[at + 4:at + 4 + length].decode())
        at += 4 + length
    return sorted(zip(texts[::2], texts[1::2], strict=True))
