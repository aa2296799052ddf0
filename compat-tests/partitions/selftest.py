"""Tests that each check finds the violations in its spoiled histories, and none in its good ones."""

import itertools
import random

from checks import fifo, kept, linearizable, reads, sessions, watches
from history import Op
from linear import after, explained

CHECKS = {"linearizable": linearizable, "reads": reads, "fifo": fifo, "watches": watches, "kept": kept, "sessions": sessions}
RANDOM_HISTORIES = 1500


def selftest():
    """Returns how many histories were checked; raises at the first wrong result."""
    count = 0
    for name, module in CHECKS.items():
        for number, good in enumerate(module.GOOD):
            assert not (broken := module.check(good)), f"{name} reports a violation in good history {number}: {broken[0]}"
        for what, spoiled in module.SPOILED:
            assert module.check(spoiled), f"{name} does not find: {what}"
        count += len(module.GOOD) + len(module.SPOILED)
    return count + against_all_orders()


def against_all_orders():
    """The search agrees with trying every order, on small random histories, about half of which can't be explained."""
    rng, verdicts = random.Random(5), []
    for _ in range(RANDOM_HISTORIES):
        ops = [random_op(rng) for _ in range(rng.randint(2, 5))]
        found, wanted = explained(ops) is None, any(fits(order) for order in orders(ops))
        assert found == wanted, f"explained: {found}, by trying all orders: {wanted}: {ops}"
        verdicts.append(found)
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.9, "nearly all histories have the same result"
    return len(verdicts)


def random_op(rng):
    begin = rng.randint(0, 6)
    kind = rng.choice(["set", "set", "make", "make", "drop", "sync-read"])
    unsure = kind != "sync-read" and rng.random() < 0.25
    error = None if unsure else rng.choice([0, 0, 0, -101, -103 if kind in ("set", "drop") else -101])
    error = {-101: -110}.get(error, error) if kind == "make" else error
    version = rng.choice([-1, 0, 1]) if kind != "sync-read" else rng.choice([0, 1])
    end = float("inf") if unsure else begin + rng.randint(1, 4) + 0.5
    return Op("p", kind, "/x", begin, end, error, rng.choice("ab"), version)


def orders(ops):
    """Every order that fits the clock, of the answered calls with any subset of the unanswered ones."""
    known, unsure = [op for op in ops if not op.unsure], [op for op in ops if op.unsure]
    for chosen in itertools.product([False, True], repeat=len(unsure)):
        for order in itertools.permutations(known + [op for op, take in zip(unsure, chosen) if take]):
            if all(one.begin <= other.end for one, other in itertools.combinations(order, 2)):
                yield order


def fits(order):
    state = None
    for op in order:
        states = after(op, state)
        if not states:
            return False
        state = states[0]
    return True
