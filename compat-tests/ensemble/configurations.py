"""Configurations as a test wants them and as servers tell them: roles, weights and groups of up to so many members."""

import dataclasses
import re

VOTER, OBSERVER = "participant", "observer"
VOTERS_LEAST = 3


def line(member, role):
    return (f"server.{member.number}={member.host}:{member.quorum_port}:{member.election_port}:{role}"
            f";{member.host}:{member.port}")


@dataclasses.dataclass(frozen=True)
class Configuration:
    """`roles`: number and role of each member. `groups`: the groups and each voter's weight, empty for a plain majority."""

    roles: tuple
    groups: tuple = ()
    weights: tuple = ()

    @property
    def numbers(self):
        return [number for number, _ in self.roles]

    @property
    def voters(self):
        return [number for number, role in self.roles if role == VOTER]

    def is_quorum(self, numbers):
        weights = dict(self.weights)
        groups = self.groups or (self.voters,)
        weight = lambda those: sum(weights.get(number, 1) for number in those)  # noqa: E731
        counted = [group for group in groups if weight(group)]
        have = [group for group in counted if 2 * weight(set(group) & set(numbers)) > weight(group)]
        return 2 * len(have) > len(counted)

    def can_spare(self, numbers):
        return self.is_quorum(set(self.voters) - set(numbers))

    def lines(self, members):
        return [line(members[number - 1], role) for number, role in self.roles]

    def whole(self, members):
        """The text of a reconfiguration that names all of it."""
        groups = [f"group.{at + 1}={':'.join(map(str, group))}" for at, group in enumerate(self.groups)]
        return ",".join([*self.lines(members), *groups, *(f"weight.{number}={weight}" for number, weight in self.weights)])

    def change(self, members, target):
        """The difference to another one, as joining and leaving; None where that can't be said so."""
        if self.groups or target.groups:
            return None
        before, after = dict(self.roles), dict(target.roles)
        joining = [line(members[number - 1], role) for number, role in target.roles if before.get(number) != role]
        leaving = [str(number) for number in before if number not in after]
        return {"joining": ",".join(joining) or None, "leaving": ",".join(leaving) or None}

    def after(self, before, target):
        """What the difference from `before` to `target` makes of this one: a rival that came first."""
        old, new, roles = dict(before.roles), dict(target.roles), dict(self.roles)
        roles.update((number, role) for number, role in target.roles if old.get(number) != role)
        left = {number: role for number, role in roles.items() if number in new or number not in old}
        return Configuration(tuple(sorted(left.items())))

    def __str__(self):
        roles = dict(self.roles)
        voters = ":".join(str(number) for number in self.voters)
        observers = [str(number) for number in roles if roles[number] == OBSERVER]
        groups = f" groups {self.groups} weights {dict(self.weights)}" if self.groups else ""
        return f"{voters}{'+' if observers else ''}{':'.join(observers)}{groups}"


def parsed(text):
    """What a server tells, and its version."""
    roles = sorted((int(number), role) for number, role in re.findall(r"^server\.(\d+)=[^;]*:(\w+);", text, re.M))
    groups = sorted(tuple(sorted(map(int, group.split(":")))) for group in re.findall(r"^group\.\d+=(.*)$", text, re.M))
    weights = sorted((int(number), int(weight)) for number, weight in re.findall(r"^weight\.(\d+)=(\d+)$", text, re.M))
    version = int(re.search(r"^version=([0-9a-f]+)$", text, re.M).group(1), 16)
    return Configuration(tuple(roles), tuple(groups), tuple(weights)), version


def majority(numbers):
    """All of them vote."""
    return Configuration(tuple((number, VOTER) for number in numbers))


def chosen(dice, count, current, java=()):
    """Another configuration than the current one: any number of members of `count` change.

    `java`: numbers of Java's members. No quorum needs one of them. A Java server that knows of a proposed configuration which
    came to nothing follows only a leader that a quorum of it follows: where that takes those that know of it too, they look for a
    leader for ever, each waiting for the others.

    Most have a majority of present voters: others are refused, as observers don't count as synchronised voters.
    """
    while True:
        voters = sorted(dice.sample(range(1, count + 1), dice.choice([2, *range(VOTERS_LEAST, count + 1), count])))
        roles = {number: VOTER for number in voters}
        for number in set(range(1, count + 1)) - set(voters):
            if dice.random() < 0.5:
                roles[number] = OBSERVER
        groups, weights = (), ()
        if len(voters) >= VOTERS_LEAST and dice.random() < 0.3:
            weights = tuple((number, dice.choice([1, 1, 2, 3])) for number in voters)
            if len(voters) == count and dice.random() < 0.5:  # Of two groups both are needed: so each has several.
                dice.shuffle(voters)
                groups = tuple(sorted((tuple(sorted(voters[:2])), tuple(sorted(voters[2:])))))
            else:
                groups = (tuple(voters),)
        found = Configuration(tuple(sorted(roles.items())), groups, weights)
        present = 2 * len(set(found.voters) & set(current.voters)) > len(found.voters)
        if java and not found.can_spare(java):
            continue
        if found != current and (present or dice.random() < 0.15):
            return found
