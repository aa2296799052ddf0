"""A minimal client that hides nothing: no retries, no queue, no pings, replies in the order of requests."""

import socket
import struct
import time

CREATE, EXISTS, GET, SET, CHILDREN, CLOSE = 1, 3, 4, 5, 8, -11
NO_NODE = -101
PATIENCE = 60  # Seconds; a bound against hanging.
OPEN_ACL = struct.pack(">ii", 1, 31) + b"\0\0\0\x05world\0\0\0\x06anyone"


class Lost(Exception):
    """The connection is gone; requests without a reply may or may not have been carried out."""


class Expired(Exception):
    """The server does not know the session, or the password is wrong."""


def buffer(data):
    return struct.pack(">i", len(data)) + data


class Session:
    def __init__(self, address, timeout_ms):
        self.address, self.timeout_ms = address, timeout_ms
        self.id, self.password, self.zxid = 0, bytes(16), 0
        self.connect()

    def connect(self):
        """Connects, and retries until a server serves; an existing session is resumed."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.sent = self.received = 0
                host, port = self.address.rsplit(":", 1)
                self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                # A server that has lost writes has a lower zxid than the one sent here, and closes the connection.
                head = struct.pack(">iqiq", 0, self.zxid, self.timeout_ms, self.id)
                self.write(head + buffer(self.password) + b"\0")
                _, timeout_ms, session = struct.unpack_from(">iiq", answer := self.read())
                break
            except (OSError, Lost):
                if deadline < time.monotonic():
                    raise Lost(f"no server accepted session {self.id:#x} at zxid {self.zxid:#x}") from None
                time.sleep(0.05)
        if timeout_ms <= 0 or self.id not in (0, session):
            raise Expired(f"session {self.id:#x}")
        self.id, self.password = session, answer[20:36]

    def write(self, body):
        try:
            self.socket.sendall(buffer(body))
        except OSError as error:
            raise Lost(str(error)) from None

    def read_exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except OSError as error:
                raise Lost(str(error)) from None
            if not part:
                raise Lost("end of stream")
            data += part
        return data

    def read(self):
        return self.read_exactly(struct.unpack(">i", self.read_exactly(4))[0])

    def send(self, kind, body=b""):
        self.sent += 1
        self.write(struct.pack(">ii", self.sent, kind) + body)

    def receive(self):
        """The error and the body of the reply to the oldest request without one."""
        reply = self.read()
        xid, zxid, error = struct.unpack_from(">iqi", reply)
        self.received += 1
        assert xid == self.received, f"reply {xid} instead of {self.received}"
        self.zxid = max(self.zxid, zxid)
        return error, reply[16:]

    def call(self, kind, body=b""):
        self.send(kind, body)
        return self.receive()

    def send_create(self, path, data, ephemeral=False):
        self.send(CREATE, buffer(path.encode()) + buffer(data) + OPEN_ACL + struct.pack(">i", ephemeral))

    def send_set(self, path, data, version):
        self.send(SET, buffer(path.encode()) + buffer(data) + struct.pack(">i", version))

    def send_get(self, path):
        self.send(GET, buffer(path.encode()) + b"\0")

    def receive_get(self):
        """Data, version and ephemeral owner of the node asked for; the data is None when there is no such node."""
        error, body = self.receive()
        if error == NO_NODE:
            return None, 0, 0
        assert error == 0, f"get: error {error}"
        (length,) = struct.unpack_from(">i", body)
        _, _, _, _, version, _, _, owner = struct.unpack_from(">qqqqiiiq", body, 4 + max(length, 0))
        return body[4:4 + length], version, owner

    def children(self, path):
        error, body = self.call(CHILDREN, buffer(path.encode()) + b"\0")
        assert error == 0, f"getChildren: error {error}"
        (count,), at, names = struct.unpack_from(">i", body), 4, []
        for _ in range(count):
            (length,) = struct.unpack_from(">i", body, at)
            names.append(body[at + 4:at + 4 + length].decode())
            at += 4 + length
        return names

    def close(self):
        """Closes the session, and returns when the server has confirmed it."""
        error, _ = self.call(CLOSE)
        assert error == 0, f"closeSession: error {error}"
        self.socket.close()
