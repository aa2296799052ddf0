"""Captures the bytes that members exchange over the loopback device, by connection.

There is no proxy between the members, so they use each other's own addresses, and configurations name addresses that are
right for every member. Needs root, or CAP_NET_RAW.
"""

import socket
import struct
import threading
import time

IPV4, SENT = 0x0800, 4  # The loopback device shows each packet twice: sent, and received.
BUFFER_BYTES = 64 << 20
HEX_LETTERS = 120


class Connection:
    """`pieces`: (whether the dialer sent it, bytes), in the order in which they were sent."""

    def __init__(self, host, port):
        self.host, self.port, self.pieces = host, port, []

    def add(self, is_dialer, data):
        if self.pieces and self.pieces[-1][0] == is_dialer:
            self.pieces[-1][1].extend(data)
        else:
            self.pieces.append((is_dialer, bytearray(data)))

    def said(self, is_dialer):
        return b"".join(data for by, data in self.pieces if by == is_dialer)

    def text(self):
        """`>` for the dialer or `<` for the other end, then the bytes in hexadecimal; long pieces continue on the next line."""
        lines = []
        for is_dialer, data in self.pieces:
            digits = data.hex()
            parts = [digits[at:at + HEX_LETTERS] for at in range(0, len(digits), HEX_LETTERS)]
            lines += [(">" if is_dialer else "<") + parts[0], *(" " + part for part in parts[1:])]
        return "\n".join(lines) + "\n"


class Tap(threading.Thread):
    def __init__(self, ports):
        super().__init__(daemon=True)
        self.ports, self.connections, self.flows = set(ports), [], {}
        self.lock, self.error = threading.Lock(), None
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV4))
        self.socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), BUFFER_BYTES)
        self.socket.bind(("lo", IPV4))
        self.start()

    def run(self):
        while True:
            packet, place = self.socket.recvfrom(1 << 17)
            if place[2] != SENT and packet[9] == socket.IPPROTO_TCP:
                with self.lock:
                    try:
                        self.take(packet)
                    except ValueError as error:
                        self.error = error

    def take(self, packet):
        head = (packet[0] & 15) * 4
        source, target = packet[12:16], packet[16:20]
        from_port, to_port, number = struct.unpack_from(">HHI", packet, head)
        if not {from_port, to_port} & self.ports:
            return
        flags, data = packet[head + 13], packet[head + (packet[head + 12] >> 4) * 4:struct.unpack_from(">H", packet, 2)[0]]
        way, back = (source, from_port, target, to_port), (target, to_port, source, from_port)
        if flags & 2:  # SYN: it has the sequence number of the first byte.
            connection = self.flows[back][0] if flags & 16 else Connection(socket.inet_ntoa(target), to_port)
            if not flags & 16:
                self.connections.append(connection)
            self.flows[way] = [connection, not flags & 16, (number + 1) & 0xFFFF_FFFF]
            return
        if not data or way not in self.flows:
            return
        connection, is_dialer, wanted = self.flows[way]
        again = (wanted - number) & 0xFFFF_FFFF
        if again >= 1 << 31:
            raise ValueError(f"bytes are missing between port {from_port} and {to_port}")
        if again < len(data):
            connection.add(is_dialer, data[again:])
            self.flows[way][2] = (number + len(data)) & 0xFFFF_FFFF

    def find(self, port, fits, host=None, seconds=30):
        """The newest connection to a port (of a host) for which `fits` holds, given the bytes that its dialer sent."""
        deadline = time.monotonic() + seconds
        while True:
            with self.lock:
                if self.error:
                    raise self.error
                for connection in reversed(self.connections):
                    if connection.port == port and host in (None, connection.host) and fits(connection.said(True)):
                        return connection
            if deadline < time.monotonic():
                raise TimeoutError(f"no such connection to port {port}")
            time.sleep(0.001)
