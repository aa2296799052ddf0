"""Attacks by strangers, which speak the protocols of members, and by single clients. A case's docstring says what it does and what
must hold; `--server java` shows what Java does.

Where this server closes or refuses what Java accepts, or the other way round, a case prints what happened.
"""

import signal
import time
import traceback

import connections
import epochs
import heavy
import http_clients
import identities
import impostors
import large_trees
import long_requests
import many
import mishaps
import snapshots
from target import Trial

CASES = [
    connections.before_the_hello, connections.after_the_hello, connections.at_the_election_port, connections.connects_at_once,
    connections.descriptors, connections.descriptors_of_a_member, connections.log_floods,
    http_clients.http_strangers, http_clients.http_crowds, http_clients.http_slow_readers, http_clients.http_endless_bodies,
    identities.identities, identities.expanded_lists, identities.forwarded_identities,
    identities.transactions_that_expand, identities.audited_identities,
    long_requests.long_lists, long_requests.long_requests, long_requests.unread_lists,
    impostors.false_acknowledgements, impostors.unread_syncs, impostors.unending_requests, impostors.requests_through_a_follower,
    impostors.forged_super,
    epochs.far_promises, epochs.far_votes, epochs.last_epoch,
    heavy.large_writes, heavy.slow_learner, heavy.flood_beside_honest, heavy.slow_disk,
    snapshots.large_snapshot, snapshots.snapshots_under_fake_observers,
    large_trees.slow_tree_to_a_member, large_trees.replies_beside_a_tree, large_trees.replies_on_a_quiet_tree,
    many.children_and_watches, many.sessions_that_expire, many.come_back_at_once,
    mishaps.permissions_removed, mishaps.clock_steps, mishaps.stopped, mishaps.authentication_is_required, mishaps.distant_member,
]

# Cases that need a quiet machine, much time, or programs that are not installed by default.
LONG = [
    heavy.flood_beside_honest, heavy.slow_disk, large_trees.slow_tree_to_a_member, large_trees.replies_beside_a_tree, large_trees.replies_on_a_quiet_tree,
    many.children_and_watches, many.sessions_that_expire, many.come_back_at_once,
    mishaps.clock_steps, mishaps.stopped, mishaps.distant_member,
]

CASE_SECONDS, CASE_SECONDS_LONG = 120, 1200  # Bounds against hanging.


class TooLong(Exception):
    """A case has run into its time limit."""


def too_long(*_):
    raise TooLong("the case has run into its time limit")


def roles_of(case, long):
    return getattr(case, "long_roles" if long else "roles", (None,))


def play(command, only=(), roles=(), long=False):
    """Runs the cases; returns the names of those that failed."""
    failed = []
    signal.signal(signal.SIGALRM, too_long)
    for case in CASES:
        if only and case.__name__ not in only:
            continue
        print(f"{case.__name__}: {case.__doc__.splitlines()[0]}", flush=True)
        for role in roles_of(case, long or roles):
            if roles and role and role not in roles:
                continue
            since = time.monotonic()
            try:
                signal.alarm(CASE_SECONDS_LONG if long else CASE_SECONDS)
                case(Trial(command, role, long))
            except Exception as error:  # The other cases still run.
                at = traceback.extract_tb(error.__traceback__)[-1]
                print(f"    FAIL {role or ''} {type(error).__name__}: {error} ({at.filename.rpartition('/')[2]}:{at.lineno})", flush=True)
                failed.append(f"{case.__name__}{f' at {role}' if role else ''}")
            finally:
                signal.alarm(0)
            print(f"    {time.monotonic() - since:.0f} s", flush=True)
    return failed
