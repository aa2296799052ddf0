"""Configurations, chosen by a test or parsed from a server's answer: roles, weights and groups."""

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
        """The text of a non-incremental reconfiguration to this configuration."""
        groups = [f"group.{at + 1}={':'.join(map(str, group))}" for at, group in enumerate(self.groups)]
        return ",".join([*self.lines(members), *groups, *(f"weight.{number}={weight}" for number, weight in self.weights)])

    def change(self, members, target):
        """The incremental reconfiguration to `target`, as joining and leaving; None where groups make that impossible."""
        if self.groups or target.groups:
            return None
        before, after = dict(self.roles), dict(target.roles)
        joining = [line(members[number - 1], role) for number, role in target.roles if before.get(number) != role]
        leaving = [str(number) for number in before if number not in after]
        return {"joining": ",".join(joining) or None, "leaving": ",".join(leaving) or None}

    def after(self, before, target):
        """This configuration after the incremental reconfiguration from `before` to `target`, when another reconfiguration came first."""
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
    """The configuration in a server's answer, and its version."""
    roles = sorted((int(number), role) for number, role in re.findall(r"^server\.(\d+)=[^;]*:(\w+);", text, re.M))
    groups = sorted(tuple(sorted(map(int, group.split(":")))) for group in re.findall(r"^group\.\d+=(.*)$", text, re.M))
    weights = sorted((int(number), int(weight)) for number, weight in re.findall(r"^weight\.(\d+)=(\d+)$", text, re.M))
    version = int(re.search(r"^version=([0-9a-f]+)$", text, re.M).group(1), 16)
    return Configuration(tuple(roles), tuple(groups), tuple(weights)), version


def majority(numbers):
    """A configuration in which all of `numbers` are voters, without groups or weights."""
    return Configuration(tuple((number, VOTER) for number in numbers))


def chosen(dice, count, current, java=()):
    """A configuration other than the current one: any number of the `count` members change.

    `java`: numbers of Java's members. No quorum may need one of them: a Java server that knows of a proposed configuration which
    was never committed follows only a leader that a quorum of that configuration follows. Where such a quorum needs other servers
    that know of it too, they stay LOOKING for ever, each waiting for the others.

    In most of the chosen configurations current voters are a majority: others are refused, as observers don't count as
    synchronised voters.
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
            if len(voters) == count and dice.random() < 0.5:  # A quorum needs both of two groups, so each has several members.
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
