"""Faults during a reconfiguration (`changes.py`). Each function injects one, sends the reconfiguration at the right moment, and
returns a function that ends the fault. The caller restarts members that were killed."""

import itertools
import signal
import time

AMID_SECONDS = [0.002, 0.01, 0.03, 0.1, 0.3]  # A reconfiguration takes about that long.


def amid(dice):
    time.sleep(dice.uniform(0, dice.choice(AMID_SECONDS)))


def ask_all(asks):
    for ask in asks:
        ask()


def kill(trial, members):
    for member in members:
        if member.process and member.process.poll() is not None and member.number not in trial.now.numbers:
            member.process = None  # A member that was removed from the ensemble may end by itself.
        if member.process:
            if member is trial.led_by:
                trial.count_killed_leader()
            member.end(signal.SIGKILL)


def nothing(trial, leader, asks):
    """The reconfiguration without a fault."""
    ask_all(asks)
    return lambda: None


def leader_killed(trial, leader, asks):
    """SIGKILL of the leader during the reconfiguration."""
    ask_all(asks)
    amid(trial.dice)
    kill(trial, [leader])
    return lambda: None


def some_killed(trial, leader, asks):
    """SIGKILL of one to three members, before the reconfiguration or during it."""
    running = [member for member in trial.members if member.process]
    victims = trial.dice.sample(running, trial.dice.randint(1, min(3, len(running) - 1)))
    if trial.dice.random() < 0.3:
        kill(trial, victims)
        ask_all(asks)
        return lambda: None
    ask_all(asks)
    for victim in victims:
        amid(trial.dice)
        kill(trial, [victim])
    return lambda: None


def all_killed(trial, leader, asks):
    """SIGKILL of all members during the reconfiguration."""
    ask_all(asks)
    amid(trial.dice)
    kill(trial, trial.dice.sample(trial.members, len(trial.members)))
    return lambda: None


def leader_frozen(trial, leader, asks):
    """SIGSTOP of the leader, for less or more than its followers' syncLimit."""
    ask_all(asks)
    amid(trial.dice)
    leader.freeze()
    time.sleep(trial.dice.uniform(0.3, 5))
    return leader.thaw


def cut(trial, some, asks, before):
    network, others = trial.ensemble.network, [member for member in trial.members if member not in some]
    if not before:
        ask_all(asks)
        amid(trial.dice)
    network.cut([member.number for member in some], [member.number for member in others])
    if before and asks:
        time.sleep(trial.dice.uniform(0, 4))
        ask_all(asks)
    time.sleep(trial.dice.uniform(0.3, 4))
    return network.heal


def leader_cut_off(trial, leader, asks):
    """A partition between the leader and the others, which begins before the reconfiguration or during it."""
    return cut(trial, [leader], asks, trial.dice.random() < 0.3)


def halves(trial, leader, asks):
    """A partition into two sides of any size."""
    size = trial.dice.randint(1, len(trial.members) - 1)
    return cut(trial, trial.dice.sample(trial.members, size), asks, trial.dice.random() < 0.5)


def halves_and_leader_killed(trial, leader, asks):
    """A partition into two sides, during which the leader is killed and restarted on its own side."""
    heal = cut(trial, trial.dice.sample(trial.members, 2), asks, False)
    kill(trial, [leader])
    trial.restart(leader)
    time.sleep(trial.dice.uniform(0.3, 4))
    return heal


def both_could_lead(trial):
    """A side that is a quorum of the next configuration, while the other side is a quorum of the current one; or None."""
    def has_quorum(side, voters):
        return 2 * len(side & set(voters)) > len(voters)
    everybody = {member.number for member in trial.members}
    sides = [set(side) for size in range(1, len(everybody)) for side in itertools.combinations(sorted(everybody), size)]
    fitting = [side for side in sides
               if has_quorum(side, trial.targets[0].voters) and has_quorum(everybody - side, trial.now.voters)]
    return [trial.members[number - 1] for number in trial.dice.choice(fitting)] if fitting else None


def quorums_apart(trial, leader, asks):
    """A partition with a quorum of the next configuration on one side and a quorum of the current one on the other: at most one
    side may go on. Before that a follower may be killed, and synchronised by DIFF or SNAP during the reconfiguration."""
    side = both_could_lead(trial) or trial.dice.sample(trial.members, 2)
    ask_all(asks)
    amid(trial.dice)
    if trial.dice.random() < 0.6:
        follower = trial.dice.choice([member for member in trial.members if member.process and member is not leader])
        kill(trial, [follower])
        trial.restart(follower)
        time.sleep(trial.dice.uniform(0, 0.5))
    heal = cut(trial, side, [], True)
    time.sleep(trial.dice.uniform(2, 5))
    return heal


DISTURBANCES = [nothing, leader_killed, some_killed, all_killed, leader_frozen, leader_cut_off, halves, halves_and_leader_killed,
                quorums_apart]
for each in DISTURBANCES:
    each.cuts = each in (leader_cut_off, halves, halves_and_leader_killed, quorums_apart)
