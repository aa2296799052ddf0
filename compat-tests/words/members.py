"""The members of one ensemble: servers 1 to 3 vote, server 4 observes."""

import time

from server import Server, free_port

PATIENCE = 60  # Seconds; a bound against hanging, not an expectation.


class Member(Server):
    """One of them. `ports`: its two for the others."""

    def __init__(self, command, number, lines, ports):
        limits = ["initLimit=20", "syncLimit=10"]
        role = ["peerType=observer"] if number == 4 else []
        super().__init__(command, [*limits, *lines, *role, "maxSessionTimeout=60000"])
        self.number, self.ports = number, ports
        (self.folder / "data/myid").write_text(f"{number}\n")

    def start(self):
        self.started_at = time.monotonic()
        return super().start()

    def serves(self):
        """It answers: there may be nobody to elect yet."""
        return self.word("ruok") == "imok"

    def mode(self):
        """Its role, as start scripts find it; `None` while it has none."""
        lines = self.word("srvr").splitlines()
        return next((line.removeprefix("Mode: ") for line in lines if line.startswith("Mode: ")), None)

    def running(self):
        return self.process is not None and self.process.poll() is None


class Ensemble:
    def __init__(self, command):
        ports = {number: (free_port(), free_port()) for number in range(1, 5)}
        kind = lambda number: "observer" if number == 4 else "participant"  # noqa: E731
        lines = [f"server.{number}=127.0.0.1:{quorum}:{election}:{kind(number)}"
                 for number, (quorum, election) in ports.items()]
        self.members = [Member(command, number, lines, ports[number]) for number in ports]

    def start(self):
        """Until all serve. Servers 1 and 2 begin, so that 2 leads."""
        for begin in (self.members[:2], self.members[2:]):
            for member in begin:
                member.start()
            self.wait(begin)
        return self

    def wait(self, members):
        """Until they serve. When each was seen to is kept: the server has served for longer than since then."""
        deadline = time.monotonic() + PATIENCE
        for member in members:
            while member.mode() is None:
                if deadline < time.monotonic():
                    raise RuntimeError(f"server {member.number} has no role\n{member.tail()}")
                time.sleep(0.02)
            member.serving_since = time.monotonic()

    def remove(self):
        for member in self.members:
            member.remove()
