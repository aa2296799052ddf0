"""Two networks that can lose, delay and partition. Node 0 stands for all clients, the other nodes are members.

`Proxies` work everywhere: connections go through a proxy process, and each member's zoo.cfg names the proxy's addresses for the
others. `Namespaces` need root and /dev/net/tun: each member has a network namespace, and single packets are lost.
"""

import ctypes
import itertools
import json
import os
import pathlib
import subprocess
import sys

from members import free_port

HERE = pathlib.Path(__file__).parent
NEW_NAMESPACES = 0x40000000 | 0x00020000  # CLONE_NEWNET and CLONE_NEWNS.
MS_REC_PRIVATE = 0x4000 | (1 << 18)
MTU = 9000  # Large, so that the process that forwards every packet has fewer to forward.
CLIENTS = 100  # The last number of node 0's address; the same as in packets.py.


def leave_machine():
    """Moves this process to new network and mount namespaces, so that everything set up there ends with the process.

    Returns why that is not possible, or None.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        if os.geteuid() != 0:
            return "not root"
        if not os.path.exists("/dev/net/tun"):
            return "no /dev/net/tun"
        os.makedirs("/run/netns", exist_ok=True)
        for call in (lambda: libc.unshare(NEW_NAMESPACES), lambda: libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None)):
            if call() != 0:
                return os.strerror(ctypes.get_errno())
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True, capture_output=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return str(error)
    return None


class Network:
    """Rules by direction (from, to): (loss 0 to 1, delay in ms, whether connections are reset)."""

    def __init__(self):
        self.rules, self.process, self.nodes = {}, None, []

    def launch(self, *command):
        self.process = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ok\n", f"{command[0]} does not start"

    def send_rules(self):
        rules = [[*way, *rule] for way, rule in self.rules.items()]
        self.process.stdin.write(json.dumps(rules) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n", "the network's process has ended"

    def set(self, sources, targets, loss=0.0, delay_ms=0, reset=False, both=True):
        """Sets a rule from each of `sources` to each of `targets`, and back if `both`."""
        ways = [(a, b) for a in sources for b in targets if a != b]
        for way in ways + [way[::-1] for way in ways if both]:
            self.rules[way] = (loss, delay_ms, reset)
        self.send_rules()

    def cut(self, sources, targets, both=True):
        self.set(sources, targets, loss=1.0, both=both)

    def heal(self):
        self.rules = {}
        self.send_rules()

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(10)
            self.process = None


class Proxies(Network):
    """With TLS the proxies can't put their own address into the hello of an election connection. A server that dials back uses the one in it, and its
    connection is never cut: only learner connections and some election connections are."""

    name, outside = "proxies", "127.0.0.1"  # `outside`: the address of node 0.

    def place(self, members):
        self.nodes = [0, *(member.number for member in members)]
        pairs = [(viewer, other) for viewer in self.nodes for other in members if viewer != other.number]
        self.ports = {(viewer, other.number): (free_port(), free_port()) for viewer, other in pairs}
        specs = []
        for (viewer, number), (quorum, election) in self.ports.items():
            other, way = members[number - 1], {"from": viewer, "to": number, "hello": None, "patient": False}
            if viewer == 0:
                specs.append({**way, "listen": quorum, "target": other.port})
                other.address = f"127.0.0.1:{quorum}"
                continue
            back = self.ports[number, viewer][1]
            specs.append({**way, "listen": quorum, "target": other.quorum_port, "patient": True})
            specs.append({**way, "listen": election, "target": other.election_port, "hello": f"127.0.0.1:{back}"})
        self.launch(HERE / "proxies.py", json.dumps(specs))

    def line(self, viewer, other):
        if viewer is other:
            return other.line()
        quorum, election = self.ports[viewer.number, other.number]
        return f"server.{other.number}=127.0.0.1:{quorum}:{election}:participant"


class Namespaces(Network):
    name, outside = "namespaces", f"10.77.0.{CLIENTS}"
    numbers = itertools.count()

    def place(self, members):
        self.nodes = [0, *(member.number for member in members)]
        run = next(self.numbers)
        self.launch(HERE / "packets.py", str(len(self.nodes)))
        self.names = []
        for node in self.nodes:
            inside = []
            if node:
                self.names.append(name := f"zk{run}-{node}")
                ip("netns", "add", name)
                ip("link", "set", f"wire{node}", "netns", name)
                ip("-n", name, "link", "set", "lo", "up")
                inside = ["-n", name]
                member = members[node - 1]
                member.host, member.before = f"10.77.0.{node}", ["ip", "netns", "exec", name]
                member.address = f"{member.host}:{member.port}"
            ip(*inside, "addr", "add", f"10.77.0.{node or CLIENTS}/24", "dev", f"wire{node}")
            ip(*inside, "link", "set", f"wire{node}", "mtu", str(MTU), "up")

    def line(self, _viewer, other):
        return other.line()

    def close(self):
        super().close()
        for name in self.names:
            ip("netns", "delete", name)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
