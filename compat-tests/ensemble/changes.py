"""Reconfigurations of several members at once, under checked load, while members are killed, stopped and cut off.

Each reconfiguration is sent to one member, or two rival ones to two members; a fault comes before it, or so shortly after it
that it is still being carried out. Then the fault ends, and these must hold: one leader, and never two of one epoch; one configuration
in force at all of its members, in memory and in their files; it is the acknowledged one, or one that was requested and not
answered, or the one before; versions never go back. Every few changes the load ends: no acknowledged write is lost, no session has
expired, all members have the same tree. A Java server that knows of a proposed configuration which was never committed looks for a
leader for ever (docs/deviations.md): it is stopped, its proposal removed, and started, as its operator would have to do. One that was
killed after it had logged what a synchronisation brought, and before it saved its currentEpoch, refuses to start (docs/migration.md):
its currentEpoch is written, and it is started. How often both happened is printed. Some of these spans run with forceSnapshotSync. A seed chooses configurations, forms of
requests, faults and their moments, but not the timing inside the servers, so that a seed need not reproduce a failure.
"""

import collections
import functools
import random
import re
import signal
import threading
import time

import network
import work
from change import BAD_VERSION, CONFIG, SETTINGS, reconfig
from client import Client, Once
from configurations import OBSERVER, VOTER, chosen, line, majority, parsed
from disturbances import DISTURBANCES, leader_killed, quorums_apart
from load import Load
from members import Ensemble, Failed, until
from wire import Expired, Lost

QUICK, LONG, SPAN = 10, 100, 10
SETTLE_SECONDS = 90  # A bound against hanging.
ANSWER_SECONDS = 15
SLOW_SECONDS = 10  # What the members have logged is printed after a recovery that takes longer. It fails no test.
SLOW_LINES = 200
LOOKS_SECONDS = 20  # After so long without any other cause, a Java server that may never find the leader is helped.
PAUSE_SECONDS = 0.03  # Between writes of each worker: all packets pass one process.
LIMITS = ["initLimit=20", "syncLimit=5", "snapCount=700", *SETTINGS]


class Changing(Ensemble):
    """An ensemble whose members have a network namespace each, where that is possible."""

    network = None

    def place(self):
        if not made.hindrance:
            self.network = network.Namespaces()
            self.network.place(self.members)

    def line(self, _viewer, other):
        return line(other, VOTER)

    def kill(self):
        super().kill()
        if self.network and self.network.process:
            self.network.close()


def made(kinds, command, settings):
    if not hasattr(made, "hindrance"):
        made.hindrance = network.leave_machine()
    return Changing(kinds, command, settings)


class Trial:
    """The ensemble, the configuration in force, and the outcome of each change."""

    def __init__(self, ensemble, dice):
        self.ensemble, self.members, self.dice = ensemble, ensemble.members, dice
        self.java = [member.number for member in ensemble.members if member.kind != "o"]
        self.static = {member: re.sub(r"(?m)^(server\.|clientPort|dynamicConfigFile).*\n", "",
                                      (member.folder / "zoo.cfg").read_text()) for member in self.members}
        self.now, self.version = majority(range(1, len(self.members) + 1)), 0
        self.table = collections.defaultdict(collections.Counter)
        self.refusals, self.led, self.targets = collections.Counter(), set(), []
        self.longest, self.described, self.led_by = 0.0, "", None
        self.killed_leaders, self.killed_amid, self.answers, self.asked = collections.Counter(), collections.Counter(), [], 0
        self.helped = self.saved = 0

    def leader(self):
        leaders = [member for member in self.members if member.process and mode_of(member) == "leader"]
        return leaders[0] if len(leaders) == 1 else None

    def count_killed_leader(self):
        """A change is under way from the moment its request is sent until its answer has come."""
        self.killed_leaders[self.led_by.kind] += 1
        self.killed_amid[self.led_by.kind] += len(self.answers) < self.asked

    def inside(self, configuration):
        return [self.members[number - 1] for number in configuration.numbers]

    def ask(self, through, answers, early=None, **what):
        """Adds the answer to `answers`: (error, configuration, its version), or nothing when the connection ends. `early`: a
        client that is connected already."""
        c = early or Once(through.address)
        try:
            if not early:
                c.connect_once(5)
                c.socket.settimeout(ANSWER_SECONDS)
            error, text = reconfig(c, **what)
            answers.append((error, *(parsed(text) if error == 0 else (None, None))))
        except (OSError, Lost, Expired):
            pass
        finally:
            c.leave()

    def connected(self, member):
        """A client connected to the member, so that the reconfiguration is its first request; or None."""
        c = Once(member.address)
        try:
            c.connect_once(5)
            c.socket.settimeout(ANSWER_SECONDS)
            return c
        except (OSError, Lost):
            return None

    def join_beforehand(self, target):
        """Starts the members that are to join, with the current members and themselves in their files, and waits until they follow."""
        for member in self.inside(target):
            if member.number in self.now.numbers:
                continue
            if not (member.process and member.process.poll() is None and member.mode()):
                self.end_outsider(member)
                self.write_as_joiner(member)
                member.launch()
            until(f"{member}, which is to join, follows", member.mode, 60)

    def write_as_joiner(self, member):
        role = self.dice.choice([VOTER, OBSERVER])
        lines = [*(line(self.members[number - 1], of) for number, of in self.now.roles if number != member.number),
                 line(member, role)]
        (member.folder / "zoo.cfg").write_text(self.static[member] + "".join(f"{each}\n" for each in lines))

    def end_outsider(self, member):
        """Stops a member that does not belong to the ensemble; it may have ended by itself, as Java's do."""
        if member.process and member.process.poll() is not None:
            member.process = None
        member.end()

    def restart(self, member):
        """Starts a member that was killed; if its files don't name it, because it joined while it ran, it gets new ones."""
        if member.process:
            return
        text = (member.folder / "zoo.cfg").read_text()
        if named := re.search(r"^dynamicConfigFile=(.*)$", text, re.M):
            with open(named.group(1)) as servers:
                text += servers.read()
        if not re.search(rf"^server\.{member.number}=", text, re.M):
            self.write_as_joiner(member)
        member.launch()

    def change(self, disturb):
        """One change during one disturbance; then the disturbance ends, and the ensemble is checked."""
        dice = self.dice
        targets = [chosen(dice, len(self.members), self.now, self.java) for _ in range(1 + (dice.random() < 0.15))]
        self.targets = targets
        for target in targets:
            self.join_beforehand(target)
        if dice.random() < 0.2:
            answers = []
            self.ask(self.one_of(self.now), answers, members=targets[0].whole(self.members), version=self.version - 1)
            assert answers in ([], [(BAD_VERSION, None, None)]), f"a reconfiguration that names an older version: {answers}"
        asked = []
        for target in targets:
            what = dice.random() < 0.6 and self.now.change(self.members, target)
            what = what or {"members": target.whole(self.members)}
            asked.append((target, {**what, "version": self.version} if dice.random() < 0.3 else what))
        leader = self.led_by = until("a leader", self.leader)
        ran = [member for member in self.members if member.process]
        self.described = (f"from {self.now} version {self.version:x} to {' and '.join(map(str, targets))}, {disturb.__name__}, led by "
                          f"{leader}")
        answers = self.answers = []
        self.asked = 0
        ways = [self.one_of(self.now) for _ in asked]
        early = [self.connected(way) if dice.random() < 0.7 else None for way in ways]
        threads = [threading.Thread(target=self.ask, args=(way, answers, c), kwargs=what)
                   for way, c, (_, what) in zip(ways, early, asked)]

        def sent(thread):
            thread.start()
            self.asked += 1
        mend = disturb(self, leader, [functools.partial(sent, thread) for thread in threads])
        mend()
        for thread in threads:
            thread.join()
        since = time.monotonic()
        for member in ran:
            self.restart(member)
        before = self.now
        # An incremental reconfiguration applies to the configuration that its rival has made.
        composed = [first.after(before, second) for first in targets for second in targets
                    if first is not second and not (before.groups or first.groups or second.groups)]
        self.settle([before, *targets, *composed])
        self.note_recovery(time.monotonic() - since)
        self.judge(disturb, before, answers, len(targets) - len(answers))
        for member in self.members:
            if member.number not in self.now.numbers and member.process and (
                    member.process.poll() is not None or dice.random() < 0.5):
                self.end_outsider(member)

    def note_recovery(self, seconds):
        self.longest = max(self.longest, seconds)
        if SLOW_SECONDS < seconds:
            said = "\n".join(f"--- {member}\n{member.tail(SLOW_LINES)}" for member in self.members)
            print(f"\nrecovery of {seconds:.1f} s until {time.strftime('%T')}, {self.described}; now {self.now}\n{said}", flush=True)

    def one_of(self, configuration):
        return self.dice.choice(self.inside(configuration))

    def judge(self, disturb, before, answers, unanswered):
        done = max(((version, str(configuration)) for error, configuration, version in answers if error == 0), default=None)
        came = (self.version, str(self.now))
        column = ("acknowledged" if done else "refused" if not unanswered else "no answer, in force" if before != self.now else
                  "no answer, not in force")
        self.table[disturb.__name__][column] += 1
        with (self.ensemble.folder / "changes.txt").open("a") as history:  # Kept when the trial fails.
            print(f"{time.strftime('%T')} {self.described}: {column}, {answers}; now {self.now} version {self.version:x}", file=history)
        self.refusals.update(error for error, _, _ in answers if error)
        if done and not unanswered:
            assert done == came, f"acknowledged: {done}, in force: {came}; {self.described}"
        elif done:
            assert done == came or done[0] < came[0], f"acknowledged: {done}, in force: {came}; {self.described}"
        elif not unanswered:
            assert before == self.now, f"refused with {answers}, in force: {came}; {self.described}"

    def settle(self, candidates):
        """Waits until all members show the same configuration, which must be one of `candidates`, and have the roles that it
        gives them."""
        heard, began = {}, time.monotonic()

        def once():
            heard.clear()
            time.sleep(0.1)  # Each look is a few sessions.
            self.save_epochs()
            running = [member for member in self.members if member.process and member.process.poll() is None]
            heard["modes"] = modes = {member: mode_of(member) for member in running}
            leaders = [member for member in running if modes[member] == "leader"]
            if len(leaders) != 1:
                return False
            text = heard["leader"] = configuration_of(leaders[0])
            if not text:
                return False
            found, version = parsed(text)
            assert found in candidates, f"{leaders[0]} shows {text}, which was never requested; {self.described}"
            if found == candidates[0]:
                assert version == self.version or not self.version, f"{text} had version {self.version:x}; {self.described}"
            else:
                assert self.version < version, f"{text} is not newer than version {self.version:x}; {self.described}"
            for member in self.inside(found):
                wanted = ["observer"] if (member.number, OBSERVER) in found.roles else ["leader", "follower"]
                if modes.get(member) not in wanted:
                    if LOOKS_SECONDS < time.monotonic() - began and self.looks_for_ever(member, modes, version):
                        self.forget_proposal(member)
                    return False
                heard[member] = configuration_of(member)
                if heard[member] != text or not in_its_files(member, version):
                    return False
            if leaders[0].number not in found.voters:
                return False
            self.now, self.version = found, version
            self.led.add((leaders[0].zxid() >> 32, leaders[0]))
            return True

        try:
            until("one leader and one configuration", once, SETTLE_SECONDS)
        except Failed as error:
            ended = [member for member in self.members if member.process and member.process.poll() is not None]
            raise Failed(f"{error}; {self.described}; answers {heard}; ended by themselves: {ended}") from None

    def looks_for_ever(self, member, modes, version):
        """Whether a Java member that runs without a leader knows of a newer configuration than the one in force."""
        proposed = member.folder / "zoo.cfg.dynamic.next"
        is_looking = member.kind != "o" and modes.get(member) == "" and proposed.exists()
        named = re.search(r"^version=([0-9a-f]+)$", proposed.read_text(), re.M) if is_looking else None
        return bool(named) and version < int(named.group(1), 16)

    def forget_proposal(self, member):
        self.helped += 1
        member.end()
        (member.folder / "zoo.cfg.dynamic.next").unlink()
        member.launch()

    def save_epochs(self):
        """Starts Java members that were killed between their log and their currentEpoch, with the epoch of the log's end."""
        for member in self.members:
            if member.kind == "o" or not member.process or member.process.poll() is None:
                continue
            late = re.search(r"The current epoch, \w+, is older than the last zxid, (\d+)", member.tail())
            if late:
                self.saved += 1
                (member.folder / "data/version-2/currentEpoch").write_text(str(int(late.group(1)) >> 32))
                member.process = None
                member.launch()

    def one_leader_per_epoch(self):
        """Checks epochs in the logs of our servers, and in the zxids of the leaders that were seen between changes."""
        for member in self.members:
            said = re.findall(r"leading: clients are served epoch=(\d+)", member.log.read_text(errors="replace"))
            self.led.update((int(epoch), member) for epoch in said)
        epochs = collections.Counter(epoch for epoch, _ in self.led)
        twice = [each for each in self.led if epochs[each[0]] > 1]
        assert not twice, f"epochs with two leaders: {twice}"

    def all_vote(self):
        """The last reconfigurations of a span, without disturbances: all members become voters.

        A leader accepts a reconfiguration only if a majority of the next voters is synchronised, and observers don't count. So an
        ensemble of two voters needs an intermediate step."""
        everybody = majority(range(1, len(self.members) + 1))
        while self.now != everybody:
            voters = self.now.voters
            more = [number for number in everybody.numbers if number not in voters][:len(voters) - 1]
            target = majority(sorted([*voters, *more]))
            self.join_beforehand(target)
            before, self.described = self.now, f"from {self.now} to {target}"

            def asked():
                answers = []
                self.ask(self.one_of(before), answers, members=target.whole(self.members))
                return answers and answers[0][0] == 0
            until(f"the change {self.described}", asked, 60)
            self.settle([before, target])
            assert self.now == target, f"{self.now} is in force; {self.described}"


def mode_of(member):
    found = re.search(r"^Mode: (\w+)", member.word("srvr"), re.M)
    return found.group(1) if found else ""


def configuration_of(member):
    """The configuration that a member shows after a sync, or an empty text."""
    c = Once(member.address)
    try:
        c.connect_once(5)
        c.socket.settimeout(5)
        c.sync()
        error, data, _ = c.get(CONFIG)
        return data.decode() if error == 0 else ""
    except (OSError, Lost, Expired, AssertionError):
        return ""
    finally:
        c.leave()


def in_its_files(member, version):
    """Whether the member's files name this version for the next start."""
    named = re.search(r"^dynamicConfigFile=.*\.dynamic\.([0-9a-f]+)$", (member.folder / "zoo.cfg").read_text(), re.M)
    return bool(named) and int(named.group(1), 16) == version


def sweep(ensemble):
    """Deletes the znodes of the load."""
    c = Client(ensemble.addresses, 60_000)
    for name in c.names("/load"):
        below = c.names(f"/load/{name}")
        for at in range(0, len(below), 200):
            for each in below[at:at + 200]:
                c.send_delete(f"/load/{name}/{each}")
            for _ in below[at:at + 200]:
                c.receive()
        c.delete(f"/load/{name}")
    c.close()


# rows: Q-97 Q-98 Q-99 Q-100
def check(ensemble, arguments):
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    dice, often = random.Random(f"{seed}-{ensemble.kinds}"), arguments.rounds or (LONG if arguments.long else QUICK)
    trial, words, snaps, number = Trial(ensemble, dice), [], 0, 0
    others = [disturb for disturb in [*DISTURBANCES, quorums_apart, quorums_apart] if ensemble.network or not disturb.cuts]
    named = [disturb for disturb in DISTURBANCES if disturb.__name__ == arguments.case]
    assert named or not arguments.case, f"no such disturbance: {arguments.case}"
    try:
        trial.settle([trial.now])
        while number < often:
            snap_only = dice.random() < 0.4
            snaps += snap_only
            ensemble.stop()
            for member in ensemble.members:
                member.flags = ["zookeeper.forceSnapshotSync=true"] if snap_only else []
            ensemble.start()
            with Load(ensemble, PAUSE_SECONDS) as load:
                for number in range(number, min(number + SPAN, often)):
                    disturb = leader_killed if number % 2 else dice.choice(others)
                    trial.change(dice.choice(named) if named else disturb)
                    load.progress()
                trial.all_vote()
                load.progress()
                number += 1
            work.alike(ensemble)
            trial.one_leader_per_epoch()
            sweep(ensemble)
            words.append(load.words())
    except BaseException as error:
        raise Failed(f"seed {seed}, change {number}: {type(error).__name__}: {error}") from error
    if arguments.trace:
        print((ensemble.folder / "changes.txt").read_text())
    print_table(trial.table)
    killed = f"leaders killed: {by_kind(trial.killed_leaders)}; before the change was answered: {by_kind(trial.killed_amid)}"
    refused = ", ".join(f"{count} with {error}" for error, count in sorted(trial.refusals.items()))
    alone = "" if ensemble.network else f"no member was cut off ({made.hindrance}); "
    return (f"{alone}seed {seed}, {often} changes, {snaps} of {len(words)} spans with forceSnapshotSync; {killed}; "
            f"refused: {refused or 'none'}; longest recovery {trial.longest:.1f} s; Java servers that looked for ever: {trial.helped}, that refused their epoch: {trial.saved}; {'; '.join(words)}")


def by_kind(count):
    return f"{count.total()}, of them Java's: {count.total() - count['o']}"


def print_table(table):
    columns = ["acknowledged", "refused", "no answer, in force", "no answer, not in force"]
    print()
    print(f"    {'':24}" + "".join(f"{column:>25}" for column in columns))
    for name, row in table.items():
        print(f"    {name:24}" + "".join(f"{row[column]:25}" for column in columns))
