"""A voter that takes part in elections only: it listens at a member's election port, votes as its caller wants, and follows no leader."""

import socket
import struct
import threading

LOOKING, FOLLOWING, LEADING = 0, 1, 2
STATES = {LOOKING: "looking", FOLLOWING: "following", LEADING: "leading"}
HELLO = struct.Struct(">qqi")  # Version, server id, length of the address that follows.
NOTIFICATION = struct.Struct(">iqqqqi")  # State, leader, zxid, round, epoch, version of the format, as in release 3.4.
FORM = 1


class Voter:
    """Takes the place of the member with the lowest id: all others dial it, so it never has to dial.

    It adopts every vote for `leader` that a LOOKING member sends, or any vote when `leader` is None. `seen` has the states that
    members have sent, in their order, as (server id, state).
    """

    def __init__(self, member, leader=None):
        self.number, self.leader, self.seen, self.over = member.number, leader, [], False
        self.listener = socket.create_server((member.host, member.election_port))
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        try:
            _, number, length = HELLO.unpack(exactly(connection, HELLO.size))
            exactly(connection, length)
            while True:
                said = exactly(connection, struct.unpack(">i", exactly(connection, 4))[0])
                state, leader, zxid, round_, epoch = struct.unpack_from(">iqqqq", said)
                self.seen.append((number, STATES.get(state, state)))
                if state == LOOKING and self.leader in (None, leader):
                    vote = NOTIFICATION.pack(LOOKING, leader, zxid, round_, epoch, FORM)
                    connection.sendall(struct.pack(">i", len(vote)) + vote)
        except (OSError, EOFError):
            connection.close()

    def close(self):
        """Frees the port for the member whose place it took."""
        self.over = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # The member has closed it.
            connection.close()


def exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
