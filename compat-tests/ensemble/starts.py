"""Starts voters together, many times, and measures how long it takes until one of them serves a write.

The times are reported only: no start fails because it is slow, but a start after which no member serves within a minute fails.
"""

import random
import signal
import statistics
import time

import work
from client import Once
from members import Failed, until
from wire import Expired, Lost

TOGETHER_SECONDS = 0.1  # Between the first start and the last.
NEVER_SECONDS = 60  # An ensemble that does not serve by then never will.
QUICK, LONG = 5, 200


def first_write(members, path, since):
    """Seconds from `since` until a member has acknowledged a write; the members are tried one after the other."""
    while time.monotonic() - since < NEVER_SECONDS:
        for member in members:
            c = Once(member.address)
            try:
                c.connect_once(5)
                error, _ = c.make(path)
                if error == 0:
                    return time.monotonic() - since
            except (OSError, Lost, Expired):
                pass
            finally:
                c.leave()
        time.sleep(0.005)
    raise Failed(f"no write within {NEVER_SECONDS} s")


def all_serve(ensemble, since):
    """Seconds from `since` until all members are in their roles."""
    until("all serve", ensemble.serves, NEVER_SECONDS)
    return time.monotonic() - since


def figures(times):
    return f"median {statistics.median(times) * 1000:.0f} ms, longest {max(times) * 1000:.0f} ms"


# rows: Q-04 Q-23 C-08
def check(ensemble, arguments):
    """Half of the starts are on empty disks, half on the data of killed servers."""
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    dice, often = random.Random(f"{seed}-{ensemble.kinds}"), arguments.rounds or (LONG if arguments.long else QUICK)
    found = {"empty": [], "as killed": []}
    everybody = []
    for number in range(often):
        ensemble.stop(how=signal.SIGKILL)
        empty = number % 2 == 0
        if empty:
            for member in ensemble.members:
                member.forget()
        order = dice.sample(ensemble.members, len(ensemble.members))
        pause = dice.uniform(0, TOGETHER_SECONDS) / (len(order) - 1)
        since = time.monotonic()
        for at, member in enumerate(order):
            time.sleep(pause if at else 0)
            member.launch()
        try:
            found["empty" if empty else "as killed"].append(first_write(ensemble.members, f"/start-{number}", since))
            everybody.append(all_serve(ensemble, since))
        except Failed as error:
            raise Failed(f"{error} (seed {seed}, start {number} in the order {order}, {pause * 1000:.0f} ms apart)") from None
    work.alike(ensemble)
    by_kind = "; ".join(f"{what}: {figures(times)}" for what, times in found.items())
    return (f"seed {seed}, {often} starts until a write is served: {figures(sum(found.values(), []))} ({by_kind}), "
            f"until all serve: {figures(everybody)}")
