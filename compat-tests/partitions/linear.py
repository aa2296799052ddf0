"""Whether calls on one znode can be put in an order that explains all answers: Wing and Gong's search, memoised as Lowe's.

A znode is None or (version, data). A call takes effect once between its begin and its end; one without an answer at any
time after its begin, or never. States already tried with the same calls done are not tried again.
"""

import dataclasses
import math

from history import BAD_VERSION, EXISTS_ALREADY, NO_NODE, READS

ANY = "any"  # A znode whose state is not known.
STEPS_MAX = 300_000  # Above this the result is undecided, which counts as a failure.


class Undecided(Exception):
    """The search was longer than STEPS_MAX."""


def effect(op, state):
    """The state after `op`, and the error of its reply, if it is carried out on `state`."""
    if op.kind == "make":
        return ((0, op.data), 0) if state is None else (state, EXISTS_ALREADY)
    if state is None:
        return state, NO_NODE
    if op.version not in (-1, state[0]):
        return state, BAD_VERSION
    return ((state[0] + 1, op.data) if op.kind == "set" else None), 0


def after(op, state):
    """The states after `op` if its answer is the recorded one: none or one."""
    if op.kind in READS:
        seen = (op.version, op.data) if op.done else None
        return [seen] if state in (ANY, seen) else []
    if state == ANY:
        return after_any(op)
    then, error = effect(op, state)
    if op.unsure:
        return [then] if error == 0 else []  # If it was refused, it had no effect: that is the case where it is never carried out.
    return [then] if error == op.error else []


def after_any(op):
    """The states after `op` on a znode of unknown state."""
    if op.unsure:
        return []  # The state stays unknown with it, as without it.
    if op.error in (EXISTS_ALREADY, BAD_VERSION):
        return [ANY]
    if op.error == NO_NODE or op.kind == "drop":
        return [None]
    return [(0, op.data)] if op.kind == "make" else [(op.version + 1, op.data) if op.version >= 0 else ANY]


def explained(ops, start=None):
    """None if an order explains all of `ops`; otherwise the largest number of them, in order of begin, that can be ordered."""
    known = sorted((op for op in ops if not op.unsure), key=lambda op: op.begin)
    unsure = sorted((op for op in ops if op.unsure), key=lambda op: op.begin)
    best, steps, tried = 0, 0, set()
    # Calls done so far: the first `low` of `known`, those after them with a bit in `beyond`, those of `unsure` with a bit in `maybe`.
    stack = [(0, 0, 0, start)]
    while stack:
        place = stack.pop()
        if place in tried:
            continue
        tried.add(place)
        steps += 1
        if steps > STEPS_MAX:
            raise Undecided(f"{len(ops)} calls, {len(unsure)} of them without an answer")
        low, beyond, maybe, state = place
        if low == len(known):
            return None
        best = max(best, low)
        next_ones, horizon = [], float("inf")
        for at in range(low, len(known)):
            if known[at].begin > horizon:
                break
            if not beyond >> (at - low) & 1:
                next_ones.append(at)
                horizon = min(horizon, known[at].end)
        for at, op in enumerate(unsure):  # Pushed first, so tried last: most of them had no effect or are not needed yet.
            if op.begin > horizon:
                break
            if not maybe >> at & 1:
                stack += [(low, beyond, maybe | 1 << at, then) for then in after(op, state)]
        for at in reversed(next_ones):
            if known[at].begin <= horizon:
                for then in after(known[at], state):
                    stack.append((*advanced(low, beyond | 1 << (at - low)), maybe, then))
    return best


def advanced(low, beyond):
    """The same set of calls with as many as can be in `low`."""
    while beyond & 1:
        low, beyond = low + 1, beyond >> 1
    return low, beyond


def until(ops, moment):
    """The history up to a moment, with outstanding calls as unanswered ones; outstanding reads and refused calls are dropped."""
    under_way = [op for op in ops if op.begin <= moment < op.end and (op.unsure or op.done) and op.kind not in READS]
    return [op for op in ops if op.end <= moment] + [dataclasses.replace(op, error=None, end=math.inf) for op in under_way]


def can_not_be(ops, start=None):
    try:
        return explained(ops, start) is not None
    except Undecided:
        return False


def smallest(ops):
    """A small set of the calls that still can't be explained. Calls are left out only if that makes an explanation easier: all
    after the moment of the failure; all that ended before a moment without outstanding calls (the znode's initial state is then
    unknown); reads and refused calls one by one."""
    moments = sorted(op.end for op in ops if not op.unsure)
    low, high = 0, len(moments) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if can_not_be(until(ops, moments[middle])) else (middle + 1, high)
    left, start = until(ops, moments[low]), None
    for cut in reversed(list(quiet_moments(left))):
        rest = [op for op in left if op.unsure or op.begin > cut]
        if can_not_be(rest, ANY):
            left, start = rest, ANY
            break
    for op in left[:]:
        rest = [other for other in left if other is not op]
        if rest and (op.kind in READS or op.error) and can_not_be(rest, start):
            left = rest
    return sorted(left, key=lambda op: op.begin)


def quiet_moments(ops):
    """The moments, at the end of a call, at which no other call is outstanding."""
    latest = None
    for op in sorted((op for op in ops if not op.unsure), key=lambda op: op.begin):
        if latest is not None and latest < op.begin:
            yield latest
        latest = op.end if latest is None else max(latest, op.end)
