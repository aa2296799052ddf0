"""A proxy between a client and its server that loses the reply to one request which the server has carried out."""

import socket
import struct
import threading

import server as tools

CREATES = {1, 15, 19, 21}  # create, create2, createContainer, createTTL.


def read_exactly(stream, count):
    data = b""
    while len(data) < count:
        part = stream.recv(count - len(data))
        if not part:
            raise OSError("end of stream")
        data += part
    return data


def read_frame(stream):
    head = read_exactly(stream, 4)
    return head + read_exactly(stream, *struct.unpack(">i", head))


class LosesReply:
    """Forwards everything, until a create below `folder`: it closes the connection in place of that create's reply."""

    def __init__(self, server, folder):
        self.server, self.marker, self.lost = server, folder.encode() + b"/", 0
        self.listener = socket.create_server(("127.0.0.1", tools.free_port()))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client = self.listener.accept()[0]
                upstream = socket.create_connection(("127.0.0.1", self.server.port))
                doomed = []  # The xid whose reply is not forwarded.
                for run in (self.requests, self.replies):
                    threading.Thread(target=run, args=(client, upstream, doomed), daemon=True).start()
        except OSError:
            pass  # Closed.

    def requests(self, client, upstream, doomed):
        try:
            upstream.sendall(read_frame(client))  # The connect request has no xid.
            while True:
                frame = read_frame(client)
                _, xid, kind = struct.unpack_from(">iii", frame)
                if kind in CREATES and self.marker in frame and not self.lost:
                    self.lost += 1
                    doomed.append(xid)
                upstream.sendall(frame)
        except OSError:
            end(client, upstream)

    def replies(self, client, upstream, doomed):
        try:
            client.sendall(read_frame(upstream))
            while True:
                frame = read_frame(upstream)
                if doomed and struct.unpack_from(">i", frame, 4)[0] == doomed[0]:
                    raise OSError("lost on purpose")
                client.sendall(frame)
        except OSError:
            end(client, upstream)

    def close(self):
        self.listener.close()


def end(*sockets):
    for stream in sockets:
        try:
            stream.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        stream.close()
