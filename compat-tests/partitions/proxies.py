"""A proxy process between members: every connection goes through it, with a rule for each direction.

Each line on standard input is a JSON list of rules [from, to, loss, delay in ms, reset], which replaces the previous list, and is
answered by `ok`. TCP retransmits lost packets, so a rule means:
  - loss 1: bytes, ends of connections and new connections wait until the rule is removed;
  - loss below 1: that fraction of reads is delivered 200 ms late, as after a retransmission, and everything after it too;
  - reset: connections end by RST, and new ones as soon as they are accepted.
"""

import asyncio
import json
import os
import random
import socket
import struct
import sys

AGAIN_SECONDS = 0.2
PATIENCE_TRIES = 50
CHUNK_BYTES, CHUNKS_MAX = 65536, 64  # How many chunks of one direction may be queued; then the sender waits.
HELLO_BYTES, HELLO_VERSION = 20, -65536  # Version, server, length of the address that follows.


class Net:
    def __init__(self):
        self.rules, self.changed, self.links = {}, asyncio.Event(), set()

    def set(self, rules):
        self.rules = {(source, target): (loss, delay, reset) for source, target, loss, delay, reset in rules}
        for link in list(self.links):
            if self.rule(*link.way)[2] or self.rule(*link.way[::-1])[2]:
                link.abort()
        self.changed.set()
        self.changed = asyncio.Event()

    def rule(self, source, target):
        return self.rules.get((source, target), (0, 0, False))

    async def opened(self, source, target):
        """Waits until this direction is not blocked."""
        while self.rule(source, target)[0] >= 1:
            await self.changed.wait()


class Link:
    """One connection, from way[0] to way[1]."""

    def __init__(self, net, way, near):
        self.net, self.way, self.ends, self.ended = net, way, [near], asyncio.Event()

    async def run(self, port, hello, patient):
        source, target = self.way
        await self.net.opened(source, target)
        await self.net.opened(target, source)
        if self.net.rule(source, target)[2] or self.net.rule(target, source)[2] or self.ends[0][0].at_eof():
            return
        self.ends.append(await dialed(port, patient))
        (near_in, near_out), (far_in, far_out) = self.ends
        for _, out in self.ends:
            out.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = await rewritten(near_in, hello) if hello else b""
        there, back = pump(self.net, source, target, near_in, far_out, head), pump(self.net, target, source, far_in, near_out)
        work = [asyncio.ensure_future(each) for each in (there, back, self.ended.wait())]
        both = asyncio.ensure_future(asyncio.gather(*work[:2]))
        await asyncio.wait([both, work[2]], return_when=asyncio.FIRST_COMPLETED)
        for each in [both, *work]:
            each.cancel()
        await asyncio.gather(both, *work, return_exceptions=True)

    def abort(self):
        self.ended.set()
        for _, out in self.ends:
            out.transport.abort()


async def dialed(port, patient):
    """Connects to the target. Without a proxy, a learner whose leader does not listen yet is refused and tries again. Here the proxy
    has accepted its connection already, and closing it would send the learner back to LOOKING, so the proxy retries instead."""
    for _ in range(PATIENCE_TRIES if patient else 0):
        try:
            return await asyncio.open_connection("127.0.0.1", port, limit=CHUNK_BYTES)
        except OSError:
            await asyncio.sleep(0.02)
    return await asyncio.open_connection("127.0.0.1", port, limit=CHUNK_BYTES)


async def rewritten(near_in, hello):
    """Replaces the address in an election hello, at which the dialer is dialed back, by the proxy's address for it."""
    head = await near_in.readexactly(HELLO_BYTES)
    version, server, length = struct.unpack(">qqi", head)
    if version != HELLO_VERSION:
        return head
    await near_in.readexactly(length)
    return struct.pack(">qqi", version, server, len(hello)) + hello.encode()


async def pump(net, source, target, incoming, out, head=b""):
    """Forwards the bytes of one direction, delayed or blocked by its rule; then the end of the stream."""
    under_way = asyncio.Queue(CHUNKS_MAX)
    loop = asyncio.get_running_loop()

    async def read():
        data = head
        while True:
            loss, delay_ms, _ = net.rule(source, target)
            late = AGAIN_SECONDS if loss < 1 and random.random() < loss else 0
            if data:
                await under_way.put((loop.time() + delay_ms / 1000 + late, data))
            try:
                data = await incoming.read(CHUNK_BYTES)
            except OSError:
                data = b""
            if not data:
                return await under_way.put((loop.time() + net.rule(source, target)[1] / 1000, None))

    reader = asyncio.ensure_future(read())
    try:
        while True:
            due, data = await under_way.get()
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            await net.opened(source, target)
            if data is None:
                break
            out.write(data)
            await out.drain()
        if out.can_write_eof():
            out.write_eof()
    except OSError:
        await net.opened(target, source)  # While the way back is blocked, the other end must not notice that this one is closed.
        raise
    finally:
        reader.cancel()


async def serve(net, spec):
    async def accepted(incoming, out):
        link = Link(net, (spec["from"], spec["to"]), (incoming, out))
        net.links.add(link)
        try:
            await link.run(spec["target"], spec["hello"], spec["patient"])
        except (OSError, asyncio.IncompleteReadError):
            pass  # The target does not listen, or the dialer has closed the connection.
        finally:
            net.links.discard(link)
            link.abort()

    await asyncio.start_server(accepted, "127.0.0.1", spec["listen"], limit=CHUNK_BYTES)


async def main():
    net = Net()
    for spec in json.loads(sys.argv[1]):
        await serve(net, spec)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    print("ok", flush=True)
    while line := await commands.readline():
        net.set(json.loads(line))
        print("ok", flush=True)
    os._exit(0)  # Without closing the connections.


asyncio.run(main())
