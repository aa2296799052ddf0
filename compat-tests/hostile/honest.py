"""Well-behaved clients: one with occasional writes that measures their latency, and loads of ordinary writes."""

import statistics
import struct
import threading
import time

from client import SET, Client
from target import fresh_path, ms
from wire import Expired, Lost, buffer


class Beside(threading.Thread):
    """A context manager: an honest client that sets a znode and reads it, in a loop. `took` has (when, seconds) of each round.

    `may_lose`: the connection may end, as when its server is killed; the client then connects to the next address.
    """

    def __init__(self, addresses, pause=0.02, may_lose=False, timeout_ms=60_000):
        super().__init__(daemon=True)
        self.client = Client([addresses] if isinstance(addresses, str) else addresses, timeout_ms)
        self.path, self.pause, self.may_lose = fresh_path("beside"), pause, may_lose
        assert self.client.make(self.path, b"0")[0] == 0
        self.over, self.took, self.error, self.lost = threading.Event(), [], None, 0
        self.acknowledged = 0

    def run(self):
        number = 0
        while not self.over.wait(self.pause):
            asked, number = time.monotonic(), number + 1
            try:
                error = self.client.set(self.path, b"%d" % number)
                assert error == 0, f"the honest client's set failed with {error}"
                self.acknowledged = number
                assert self.client.get(self.path)[0] == 0
            except Lost as error:
                self.lost += 1
                if self.may_lose:
                    try:
                        self.client.connect()
                    except Exception as again:  # Reported by the main thread.
                        self.error = again
                        return
                else:
                    self.error = error
                    return
            except Expired as error:
                self.error = error
                return
            except Exception as error:
                self.error = error
                return
            self.took.append((asked, time.monotonic() - asked))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, _):
        self.over.set()
        self.join(90)
        if error is None:
            self.check()
            assert not self.is_alive(), "the honest client's request is not answered"
            self.client.socket.close()

    def check(self):
        if self.error:
            raise AssertionError(f"the honest client: {self.error!r}") from self.error

    def longest(self, since=0.0):
        return max((seconds for asked, seconds in self.took if asked + seconds >= since), default=0.0)

    def words(self, since=0.0):
        """The time of a set and a get together: median, 99 %, longest."""
        times = sorted(seconds for asked, seconds in self.took if asked >= since)
        if len(times) < 2:
            return f"honest: {len(times)} answers, longest {ms(self.longest(since))}"
        last = times[min(len(times) - 1, int(len(times) * 0.99))]
        return f"honest set and get {ms(statistics.median(times))}, 99 % {ms(last)}, longest {ms(self.longest(since))} of {len(times)}"


class Writer(threading.Thread):
    """Keeps `window` writes of `size` bytes outstanding until it is stopped, or the connection ends."""

    def __init__(self, address, size=1000, window=16, timeout_ms=60_000, patience=60):
        super().__init__(daemon=True)
        self.client = Client([address], timeout_ms)
        self.path, self.window, self.data = fresh_path("load"), window, bytes(size)
        assert self.client.make(self.path)[0] == 0
        self.client.socket.settimeout(patience)
        self.over, self.error, self.longest, self.begun = threading.Event(), None, 0.0, self.client.received

    @property
    def answered(self):
        return self.client.received - self.begun

    def run(self):
        sender = threading.Thread(target=self.send, daemon=True)
        self.room = threading.Semaphore(self.window)
        sender.start()
        asked = time.monotonic()
        try:
            while sender.is_alive() or self.client.received < self.client.sent:
                if self.client.received == self.client.sent:
                    time.sleep(0.001)
                    continue
                error, _ = self.client.receive()
                assert error == 0, f"setData failed with {error}"
                self.longest, asked = max(self.longest, time.monotonic() - asked), time.monotonic()
                self.room.release()
        except Exception as error:  # Reported by the main thread.
            self.error = self.error or error
            self.over.set()

    def send(self):
        body = buffer(self.path.encode()) + buffer(self.data) + struct.pack(">i", -1)
        try:
            while not self.over.is_set():
                if self.room.acquire(timeout=0.2):
                    self.client.send(SET, body)
        except Exception as error:
            self.error = self.error or error


class Writers:
    """A context manager with some `Writer`s; it waits at its end until all of their writes are answered."""

    def __init__(self, addresses, count, size=1000, window=16, patience=60, may_fail=False):
        self.all = [Writer(addresses[n % len(addresses)], size, window, patience=patience) for n in range(count)]
        self.may_fail = may_fail

    @property
    def answered(self):
        return sum(writer.answered for writer in self.all)

    def failed(self):
        return [writer.error for writer in self.all if writer.error]

    def __enter__(self):
        self.began = time.monotonic()
        for writer in self.all:
            writer.start()
        return self

    def stop(self):
        for writer in self.all:
            writer.over.set()

    def __exit__(self, kind, error, _):
        self.stop()
        for writer in self.all:
            writer.join(90 if error is None else 1)
        self.seconds = time.monotonic() - self.began
        if error is None and not self.may_fail:
            failed = self.failed()
            assert not failed, f"{len(failed)} of {len(self.all)} writers failed: {failed[0]!r}"
        for writer in self.all:
            writer.client.socket.close()

    def words(self):
        return f"{self.answered / self.seconds:,.0f} writes/s"
