"""A process that connects network namespaces: it has a TUN device in each, and every IP packet goes through it.

Each line on standard input is a JSON list of rules [from, to, loss, delay in ms, reset], which replaces the previous list, and is
answered by `ok`. A rule from "network" to 78 is for all packets to 10.78.*. `loss` is the fraction of packets that is dropped; `reset`
drops all of them, as there are no connections to reset here. The kernel's traffic control is not needed: not every kernel has it.
"""

import fcntl
import heapq
import itertools
import json
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PACKET_BYTES = 65536
CLIENTS = 100  # Last number in the address of node 0; the others have the number of the node.


def opened(name):
    """Opens a TUN device in this namespace; it may then be moved to another one, and is still read here."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


class Network:
    def __init__(self, nodes):
        self.devices = {opened(f"wire{node}"): node for node in range(nodes)}
        self.ends = {node: device for device, node in self.devices.items()}
        self.rules, self.late, self.numbers = {}, [], itertools.count()

    def take(self, device):
        for _ in range(64):
            try:
                packet = os.read(device, PACKET_BYTES)
            except BlockingIOError:
                return
            source, target = self.devices[device], packet[19] % CLIENTS
            if packet[0] >> 4 != 4 or target not in self.ends:
                continue
            whole = self.rules.get(("network", packet[17]))
            loss, delay_ms, reset = whole or self.rules.get((source, target), (0, 0, False))
            if reset or random.random() < loss:
                continue
            if delay_ms:
                heapq.heappush(self.late, (time.monotonic() + delay_ms / 1000, next(self.numbers), target, packet))
            else:
                self.give(target, packet)

    def give(self, target, packet):
        try:
            os.write(self.ends[target], packet)
        except OSError:
            pass  # A full queue, or a device that is down: the packet is lost.

    def run(self):
        poll = select.poll()
        for device in [0, *self.devices]:
            poll.register(device, select.POLLIN)
        while True:
            wait_ms = None
            while self.late and (wait_ms := (self.late[0][0] - time.monotonic()) * 1000) <= 0:
                _, _, target, packet = heapq.heappop(self.late)
                self.give(target, packet)
                wait_ms = None
            for device, _ in poll.poll(wait_ms):
                if device:
                    self.take(device)
                    continue
                if not (line := sys.stdin.readline()):
                    return
                rules = json.loads(line)
                self.rules = {(source, target): (loss, delay, reset) for source, target, loss, delay, reset in rules}
                print("ok", flush=True)


network = Network(int(sys.argv[1]))
print("ok", flush=True)
network.run()
