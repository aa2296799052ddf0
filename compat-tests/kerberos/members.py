"""Three servers with Kerberos between them, one of them Java's; a server whose principal is not a member's host is refused."""

import time

from ear import Ear, create
from kdc import SERVICE_OF_MEMBERS
from server import Server, free_port
from wire import CREATE

HOSTS = {1: "127.0.0.1", 2: "127.0.0.2", 3: "127.0.0.3"}
SASL = ["quorum.auth.enableSasl=true", "quorum.auth.learnerRequireSasl=true", "quorum.auth.serverRequireSasl=true", SERVICE_OF_MEMBERS]
PATIENCE = 60


class Ensemble:
    def __init__(self, world, commands, principals=None, hosts=None, settings=()):
        lines = [f"server.{number}={host}:{free_port()}:{free_port()}" for number, host in (hosts or HOSTS).items()]
        self.servers = {}
        for number, command in commands.items():
            principal = (principals or {}).get(number, f"zkquorum/{HOSTS[number]}")
            server = Server(command, [*lines, *SASL, *settings, "initLimit=20", "syncLimit=10"], world.flags())
            (server.folder / "data" / "myid").write_text(f"{number}\n")
            (server.folder / "jaas.conf").write_text(world.realm.member_jaas(principal))
            server.serves = lambda: True  # It may have to wait for the others.
            self.servers[number] = server

    def start(self):
        for server in self.servers.values():
            server.start()
        return self

    def mode(self, number):
        answer = self.servers[number].word("srvr")
        return next((line.split()[1] for line in answer.splitlines() if line.startswith("Mode: ")), None)

    def wait(self, numbers, within=PATIENCE):
        deadline = time.monotonic() + within
        while not all(self.mode(number) in ("leader", "follower") for number in numbers):
            if deadline < time.monotonic():
                raise AssertionError("\n".join(f"{number}: {self.mode(number)}\n{self.servers[number].tail(25)}" for number in self.servers))
            time.sleep(0.2)

    def write(self, number, name):
        one = Ear(self.servers[number])
        assert one.hello(), f"no session at {number}"
        assert one.ask(1, CREATE, create(name)).heard[-1][2] == 0, one.heard

    def remove(self):
        for server in self.servers.values():
            server.remove()


# rows: Q-110 Q-112 Q-113 C-41 C-42 C-44 C-45 C-46
def mixed(world, commands):
    """Each of the three is ended and started again, so that each kind dials and accepts, leads and follows."""
    java, ours = commands
    ensemble = Ensemble(world, {1: ours, 2: java, 3: ours})
    try:
        ensemble.start().wait(HOSTS)
        modes = set()
        for turn, number in enumerate((3, 2, 1)):
            for each in HOSTS:
                ensemble.write(each, f"/n{turn}-{each}")
                modes.add((each == 2, ensemble.mode(each)))
            ensemble.servers[number].end()
            ensemble.wait(set(HOSTS) - {number})
            ensemble.servers[number].start()
            ensemble.wait(HOSTS)
        assert (False, "leader") in modes and (False, "follower") in modes, modes
    finally:
        ensemble.remove()


# rows: Q-113 C-43
def stranger(world, commands):
    """CVE-2023-44981: a server without a host of a member in its principal may not join."""
    for principal in ("zkquorum/127.0.0.9", "zkquorum"):
        ensemble = Ensemble(world, {1: commands[1], 2: commands[1], 3: commands[1]}, {3: principal})
        if principal == "zkquorum":  # It can't accept with that one, only dial.
            jaas = ensemble.servers[3].folder / "jaas.conf"
            server, learner = jaas.read_text().split("QuorumLearner")
            whole = world.realm.keytab("zkquorum/127.0.0.3")
            server = server.replace(f"{principal}@", "zkquorum/127.0.0.3@").replace("zkquorum.keytab", whole.name)
            jaas.write_text(server + "QuorumLearner" + learner)
        try:
            ensemble.start().wait({1, 2})
            deadline = time.monotonic() + 15
            logs = ""
            while "not a member's" not in logs and "not of the form" not in logs:
                logs = "".join(ensemble.servers[number].log.read_text() for number in (1, 2))
                assert time.monotonic() < deadline, f"no server refused {principal}\n{logs[-3000:]}"
                time.sleep(0.2)
            assert ensemble.mode(3) is None, f"{principal}: {ensemble.mode(3)}"
        finally:
            ensemble.remove()


# rows: C-186
def canonical(world, commands):
    """The address of each server.N line is `localhost` by a reverse lookup, and only the names that this gives are principals of servers."""
    java, ours = commands
    hosts = dict.fromkeys(HOSTS, "127.0.0.1")
    principals = dict.fromkeys(HOSTS, "zkquorum/localhost")
    ensemble = Ensemble(world, {1: ours, 2: java, 3: ours}, principals, hosts, ["kerberos.canonicalizeHostNames=true"])
    try:
        ensemble.start().wait(HOSTS)
        for number in HOSTS:
            ensemble.write(number, f"/n{number}")
            ensemble.servers[number].end()
            ensemble.wait(set(HOSTS) - {number})
            ensemble.servers[number].start()
            ensemble.wait(HOSTS)
    finally:
        ensemble.remove()


WORK = {"two of ours and Java's": mixed, "principal that is not a member's": stranger, "canonical names": canonical}
