"""A stranger pretends to be an absent voter with a later acceptedEpoch, at the members' learner and election ports."""

import shutil
import socket
import threading
import time

from client import Client
from honest import Beside
from members import until
from strangers import Closed, Learner, election_hello, vote
from target import LEADER, at, elections, lives
from voter import LOOKING

LAST = 0x7fff_fffe
LEAPS = {"1": 1, "1,024": 1024, "2^20": 1 << 20, "the last epoch": None}
ELECTIONS_MAX, EPOCHS_MAX = 12, 10_000  # For all leaps together: eight an hour that other servers may cause, and the elections that follow from these.
INIT_LIMIT = 4  # 2 s: a stranger may try again soon.


def epoch_of(member):
    path = member.folder / "data/version-2/acceptedEpoch"
    return int(path.read_text())


def at_learner_ports(members, number, leap, over):
    """Connects to each member's learner port repeatedly, with an acceptedEpoch that is `leap` ahead."""

    def wait_at(member):
        while not over.wait(0.05):
            learner = None
            try:
                accepted = min(LAST, epoch_of(member) + leap) if leap else LAST
                learner = Learner(member, number, accepted=accepted)
                learner.promise(accepted << 32)
                learner.is_closed(0.5)
            except (OSError, Closed, ValueError):
                pass
            finally:
                if learner:
                    learner.close()

    return [threading.Thread(target=wait_at, args=(member,), daemon=True) for member in members]


def at_election_ports(members, number, leap, over):
    """Sends LOOKING notifications to each member's election port, with a later round and a zxid that is `leap` epochs ahead."""
    def vote_at(member):
        while not over.wait(0.3):
            try:
                epoch = min(LAST, epoch_of(member) + leap) if leap else LAST
                with socket.create_connection((member.host, member.election_port), timeout=2) as peer:
                    peer.sendall(election_hello(number))
                    for round_ in (1, 1 << 20, (1 << 63) - 1):
                        peer.sendall(vote(LOOKING, number, epoch << 32, round_, epoch))
                        over.wait(0.1)
            except (OSError, ValueError):
                pass

    return [threading.Thread(target=vote_at, args=(member,), daemon=True) for member in members]


@at(LEADER)
def far_promises(trial):
    """A stranger at the learner ports, as an absent voter with a later acceptedEpoch, causes few elections and uses up few epochs."""
    with trial.target([f"initLimit={INIT_LIMIT}", "maxClientCnxns=0"]) as target:
        target.is_calm = False
        ensemble, away = target.ensemble, target.ensemble.voters[-1]
        ensemble.stop(away)
        ensemble.wait()
        members = ensemble.running()
        first, total = max(map(epoch_of, members)), 0
        with Beside([member.address for member in members], may_lose=True) as beside:
            for name, leap in LEAPS.items():
                before, epoch, over = elections(members), max(map(epoch_of, members)), threading.Event()
                threads = at_learner_ports(members, away.number, leap, over)
                for thread in threads:
                    thread.start()
                time.sleep(trial.of(4, 60))
                over.set()
                for thread in threads:
                    thread.join(15)
                ensemble.wait(f"after an acceptedEpoch {name} ahead: the members")
                after = elections(members)
                looked = max(after[number] - before[number] for number in before)
                total += looked
                trial.say(f"{name} ahead: {looked} elections, epoch {epoch} to {max(map(epoch_of, members))}")
        ran = max(map(epoch_of, members)) - first
        trial.say(f"{total} elections, {ran} epochs; {beside.lost} connections lost, {beside.words()}")
        for member in members:
            lives(member.process)
        assert ran <= EPOCHS_MAX, f"a stranger uses up {ran} epochs"
        assert total <= ELECTIONS_MAX, f"a stranger causes {total} elections"
        target.server = until("a leader", ensemble.leader)
        ensemble.start(away)


@at(LEADER)
def far_votes(trial):
    """A stranger at the election ports, with votes that name later epochs: members that have a leader keep it."""
    with trial.target(["maxClientCnxns=0"]) as target:
        target.is_calm = False
        ensemble, away = target.ensemble, target.ensemble.voters[-1]
        ensemble.stop(away)
        ensemble.wait()
        members, before = ensemble.running(), elections(ensemble.running())
        with Beside(members[0].address) as beside:
            for leap in LEAPS.values():
                over = threading.Event()
                threads = at_election_ports(members, away.number, leap, over)
                for thread in threads:
                    thread.start()
                time.sleep(trial.of(1.5, 20))
                over.set()
                for thread in threads:
                    thread.join(15)
        trial.say(f"elections before {before}, after {elections(members)}; {beside.words()}")
        assert elections(members) == before, "a stranger's votes caused an election"
        target.server = until("a leader", ensemble.leader)
        ensemble.start(away)


def write_epochs(member, epoch):
    for name in ("acceptedEpoch", "currentEpoch"):
        (member.folder / f"data/version-2/{name}").write_text(str(epoch))


def last_epoch(trial):
    """Members whose epoch files name the last possible epoch start and elect no leader; docs/operations.md says how to recover."""
    with trial.members() as ensemble:
        client = Client([ensemble.leader().address])
        for number in range(50):
            assert client.make(f"/kept-{number}")[0] == 0
        client.close()
        newest = max(ensemble.members, key=lambda member: member.zxid())
        data_epoch = newest.zxid() >> 32
        ensemble.stop()
        for member in ensemble.members:
            write_epochs(member, LAST)
        for member in ensemble.members:
            member.launch()
        time.sleep(trial.of(4, 30))
        ended = [member for member in ensemble.members if member.process.poll() is not None]
        modes = [member for member in ensemble.members if member not in ended and member.mode()]
        logging = [member for member in ensemble.members if "no epoch can follow" in member.log.read_text(errors="replace")]
        trial.say(f"at the last epoch: {len(ended)} of 3 exited, {len(modes)} serve, {len(logging)} log the reason")
        if trial.is_java:
            for member in ended:
                member.process = None
        assert not ended or trial.is_java, f"{ended} don't start at the last epoch"
        assert not modes or trial.is_java, f"{modes} serve although no epoch is left"
        assert logging or trial.is_java, "no member logs why there is no leader"
        if trial.is_java:
            ensemble.kill()
        else:
            ensemble.stop()
        write_epochs(newest, data_epoch + 10)
        others = [member for member in ensemble.members if member is not newest]
        for member in others:
            shutil.rmtree(member.folder / "data/version-2")
        ensemble.start(newest, others[0])
        assert ensemble.leader() is newest, "the member with the data must lead"
        ensemble.start()
        client = Client([others[1].address])
        client.sync()
        missing = [number for number in range(50) if not client.exists(f"/kept-{number}")]
        assert not missing, f"{len(missing)} znodes are lost by the recovery"
        assert client.make("/after")[0] == 0
        client.close()
        trial.say(f"after the recovery: {newest} leads in epoch {newest.zxid() >> 32}, no znode is lost")
