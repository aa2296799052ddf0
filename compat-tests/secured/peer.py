"""A hand-made server that dials the others: its hello, its SASL, and whether the other end serves or refuses it."""

import socket
import ssl
import struct

from digest_md5 import respond
from factory import folder
from stages import SASL_PASSWORD, USER

MAGIC = bytes.fromhex("5f2435013501edcc")
SERVER, URI = "zk-quorum-sasl-md5", "zookeeper-quorum/zk-quorum-sasl-md5"
IN_PROGRESS, SUCCESS, ERROR = 0, 1, -1
SERVED, REFUSED, WAITS = "served", "refused", "waits"


def packet(status, token):
    return MAGIC + struct.pack(">ii", status, -1 if token is None else len(token)) + (token or b"")


def hello(server_id, port):
    address = f"127.0.0.1:{port}".encode()
    return struct.pack(">qqi", -65536, server_id, len(address)) + address


def learner_info(server_id, protocol=0x10000):
    """FOLLOWERINFO with epoch 0."""
    info = struct.pack(">qiq", server_id, protocol, 0)
    return struct.pack(">iqi", 11, 0, len(info)) + info + struct.pack(">i", -1)


class Peer:
    """One connection to a port of a member."""

    def __init__(self, member, port, seconds=8, over_tls=None):
        self.socket = socket.create_connection((member.host, port), timeout=seconds)
        if over_tls:
            made = folder()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(made / "trust.pem")
            if over_tls != "none":
                context.load_cert_chain(made / f"{over_tls}.pem", made / f"{over_tls}.key")
            self.socket = context.wrap_socket(self.socket)

    def send(self, data):
        self.socket.sendall(data)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionResetError("end of stream")
            data += part
        return data

    def packet(self):
        head = self.exactly(16)
        assert head[:8] == MAGIC, head
        status, length = struct.unpack(">ii", head[8:])
        return status, self.exactly(max(length, 0))

    def authenticate(self, user=USER, password=SASL_PASSWORD, **broken):
        """The status after a response."""
        self.send(packet(IN_PROGRESS, b""))
        status, challenge = self.packet()
        assert status == IN_PROGRESS, status
        self.send(packet(IN_PROGRESS, respond(challenge, user, password, **{"realm": SERVER, "uri": URI, **broken})))
        return self.packet()[0]

    def outcome(self):
        """SERVED if the other end sends a byte, REFUSED if it ends the connection, WAITS if it does neither before the timeout."""
        try:
            return SERVED if self.socket.recv(1) else REFUSED
        except TimeoutError:
            return WAITS
        except OSError:
            return REFUSED

    def close(self):
        self.socket.close()
