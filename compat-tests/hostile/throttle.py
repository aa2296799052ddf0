"""A proxy process that limits how many bytes a second come from each target: `[[listen, target, bytes], ...]`.

Bytes to the target are not limited. `Throttled` is an ensemble in which one member's learner connections go through this proxy.
"""

import asyncio
import json
import pathlib
import socket
import subprocess
import sys

PIECE = 16 * 1024


class Rate:
    def __init__(self, a_second):
        self.a_second, self.free_at = a_second, 0.0

    async def wait_for(self, count):
        now = asyncio.get_running_loop().time()
        self.free_at = max(self.free_at, now) + count / self.a_second
        await asyncio.sleep(self.free_at - now)


async def copy(reader, writer, rate):
    try:
        while data := await reader.read(PIECE):
            if rate:
                await rate.wait_for(len(data))
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def listen(port, target, a_second):
    rate = Rate(a_second)

    async def passed_on(reader, writer):
        # Small, so that bytes wait at the sender; but at least a few loopback segments (64 KB each), or TCP stalls.
        out = socket.socket()
        out.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 * 1024)
        out.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(out, ("127.0.0.1", target))
            back, forth = await asyncio.open_connection(sock=out, limit=PIECE)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, forth, None), copy(back, writer, rate))

    await asyncio.start_server(passed_on, "127.0.0.1", port, limit=PIECE)


async def main(ways):
    for way in ways:
        await listen(*way)
    print("ok", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def made(number, a_second):
    """A class of ensembles in which member `number` receives from every leader at `a_second` bytes a second."""
    from members import Ensemble, free_port

    class Throttled(Ensemble):
        same_view, proxy = False, None

        def place(self):
            others = [member for member in self.members if member.number != number]
            self.ways = {other.number: free_port() for other in others}
            ways = [[self.ways[other.number], other.quorum_port, a_second] for other in others]
            command = [sys.executable, pathlib.Path(__file__), json.dumps(ways)]
            self.proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self.proxy.stdout.readline() == "ok\n", "the proxy does not start"

        def line(self, viewer, other):
            text = other.line()
            if viewer.number == number and other.number in self.ways:
                return text.replace(f":{other.quorum_port}:", f":{self.ways[other.number]}:", 1)
            return text

        def kill(self):
            super().kill()
            if self.proxy:
                self.proxy.stdin.close()
                self.proxy.kill()
                self.proxy.wait(10)
                self.proxy = None

    return Throttled


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
