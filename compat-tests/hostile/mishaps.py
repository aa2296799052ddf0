"""Accidents: removed permissions, clocks that step, stopped processes, a member with a long round trip, required authentication."""

import glob
import os
import shutil
import signal
import struct
import sys
import time
import traceback

import change
import network
from client import Client
from cluster import Cluster
from honest import Beside, Writers
from members import until
from target import ALONE, FOLLOWER, LEADER, OBSERVER, at, elections, lives, ms
from wire import Lost

REQUIRE_AUTH, NO_AUTH = -124, -102


@at(ALONE, FOLLOWER, long=(LEADER, OBSERVER))
def permissions_removed(trial):
    """The data folder loses its permissions: the server goes on or exits with the reason; no acknowledged write is lost."""
    if os.geteuid() != 0:
        return trial.say("skipped: not root")
    # The server is still the owner, but without the capability to ignore permissions.
    before = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    with trial.target(["snapCount=100", "preAllocSize=64"], before) as target:
        target.is_calm = False
        server, data = target.server, target.server.folder / "data/version-2"
        addresses = [server.address] if trial.role == ALONE else target.ensemble.addresses
        client = Client(addresses, 60_000)
        assert client.make("/kept", b"0")[0] == 0
        mode, process = data.stat().st_mode, server.process
        data.chmod(0)
        acknowledged, deadline = 0, time.monotonic() + trial.of(5, 30)
        while time.monotonic() < deadline and acknowledged < 2000:
            try:
                client.socket.settimeout(3)
                assert client.set("/kept", b"%d" % (acknowledged + 1)) == 0
                acknowledged += 1
            except (Lost, OSError):
                time.sleep(0.5)  # Gives the process time to exit.
                if process.poll() is not None and trial.role == ALONE:
                    break
                try:
                    client.connect()
                except Exception:
                    break
        time.sleep(0.5)
        code = process.poll()
        said = [line for line in server.log.read_text(errors="replace").splitlines() if "ermission denied" in line]
        ending = f"exited with {code}" if code is not None else "goes on"
        trial.say(f"{acknowledged:,} writes acknowledged, the server {ending}; log: {said[0].strip()[:160] if said else 'no reason'}")
        client.socket.close()
        data.chmod(mode)
        assert code != 0 or trial.is_java, "it exits with status 0"
        assert said, "the log does not say that permissions are missing"
        if code is not None:
            if trial.role == ALONE:
                server.start()
            else:
                server.process = None
                target.ensemble.start(server)
        elif target.ensemble:
            target.ensemble.wait()
        client = Client([server.address])
        client.sync()
        kept = int(client.get("/kept")[1])
        assert kept >= acknowledged, f"write {acknowledged} was acknowledged, but the znode has write {kept}"
        client.close()


def clock_steps(trial):
    """Each member's clock, and a standalone server's, steps by an hour, forward and back: no election, no session expires, writes go on."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not found:
        return trial.say("skipped: no libfaketime (Debian's package faketime)")
    if trial.is_java:
        return trial.say("skipped: Java's members can't connect to each other under libfaketime")
    members, alone = trial.members("oo+o"), trial.alone()
    for server in (*members.ensemble.members, alone.server):
        server.clock = server.folder / "clock"
        server.clock.write_text("+0\n")
        # The monotonic clock is not changed, as when an operator sets the time.
        server.before = ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME_TIMESTAMP_FILE={server.clock}", "FAKETIME_NO_CACHE=1",
                         "DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]
    alone.server.command = [*alone.server.before, *alone.server.command]
    with members as ensemble, alone:
        leader, servers = until("a leader", ensemble.leader), [*ensemble.members, alone.server]
        owners = [Client([server.address], 4000) for server in servers]
        for owner in owners:
            assert owner.make(f"/mine-{owner.id:x}", flags=1)[0] == 0
        before, seen = elections(ensemble.members), set()
        with Beside(leader.address) as beside:
            for server in sorted(servers, key=lambda server: server is not leader):
                for step in ("+3600", "-3600", "+0"):
                    server.clock.write_text(f"{step}\n")
                    deadline = time.monotonic() + trial.of(1.1, 10)
                    while time.monotonic() < deadline:
                        for owner in owners:
                            owner.ping()
                        time.sleep(0.5)
                    path = f"/at-{server.number}{step}"
                    client = Client([server.address])
                    assert client.make(path)[0] == 0
                    seen.add(round((client.get(path)[2][2] / 1000 - time.time()) / 3600))
                    client.close()
        expired = [owner for owner in owners if not owner.exists(f"/mine-{owner.id:x}")]
        trial.say(f"ctimes were off by {sorted(seen)} hours; elections {before} to {elections(ensemble.members)}, {len(expired)} of"
                  f" {len(owners)} sessions expired; {beside.words()}")
        assert seen == {-1, 0, 1}, "the clocks did not step"
        assert not expired, "a step of the clock expires sessions"
        assert elections(ensemble.members) == before, "there was an election"


def stopped(trial):
    """SIGSTOP of each role for longer than syncLimit: the others serve, the stopped member rejoins, no acknowledged write is lost."""
    seconds = trial.of(12, 60)
    with trial.members("ooo+o", ["syncLimit=10"]) as ensemble, trial.alone(["maxSessionTimeout=600000"]) as alone:
        leader = until("a leader", ensemble.leader)
        follower = next(member for member in ensemble.voters if member is not leader)
        observer, others = ensemble.members[3], [member for member in ensemble.voters if member is not follower]
        honest = Client([alone.address], 600_000)
        assert honest.make("/alone")[0] == 0
        for name, members in (("follower and observer", [follower, observer]), ("leader", [leader])):
            serving = [member for member in ensemble.members if member not in members]
            addresses = [member.address for member in serving if member in others] or [serving[0].address]
            if name == "leader":
                addresses = [member.address for member in serving]
            with Beside(addresses, may_lose=True) as beside:
                time.sleep(0.5)
                for member in members:
                    member.freeze()
                if name == "leader":
                    alone.process.send_signal(signal.SIGSTOP)
                since = time.monotonic()
                time.sleep(seconds)
                for member in members:
                    member.thaw()
                alone.process.send_signal(signal.SIGCONT)
                again = time.monotonic()
                ensemble.wait(f"after SIGCONT of the {name}: all")
                back, path, acknowledged = time.monotonic() - again, beside.path, beside.acknowledged
                for member in members:
                    client = Client([member.address])
                    client.sync()
                    kept = int(client.get(path)[1])
                    assert kept >= acknowledged, f"{member} has write {kept}, but {acknowledged} was acknowledged before the sync"
                    client.close()
                lost = beside.lost
            trial.say(f"{name} for {seconds} s: other members' clients wait {ms(beside.longest(since))} at most, {lost} connections lost;"
                      f" all serve {back:.1f} s after SIGCONT")
            lives(alone.process)
            # Followers notice a silent leader after syncLimit (5 s), and an election follows.
            assert beside.longest(since) < (15 if name == "leader" else 5), f"a stopped {name} blocks other members' clients"
        assert honest.exists("/alone"), "the standalone server does not answer after SIGCONT"


@at(ALONE, FOLLOWER, long=(LEADER, OBSERVER))
def authentication_is_required(trial):
    """enforce.auth refuses clients without authentication. With skipACL any client may reconfigure, without it not."""
    settings = ["enforce.auth.enabled=true", "enforce.auth.schemes=digest"]
    with trial.target(settings) as target:
        stranger = Client([target.address])
        try:
            error = stranger.make("/stranger")[0]
        except Lost:
            error = "closed"
        client = Client([target.address])
        client.auth("digest", "user:secret")
        assert struct.unpack_from(">iqi", client.read())[2] == 0
        taken = client.make("/known")[0]
        made = client.exists("/stranger")
        client.close()
    trial.say(f"enforce.auth: without authentication {error}, with it {taken}")
    assert error == REQUIRE_AUTH and taken == 0 and not made, "these results differ from Java's"
    if trial.role == ALONE:
        return
    results = {}
    for skips in ("yes", "no"):
        with trial.target(["reconfigEnabled=true", f"skipACL={skips}"]) as target:
            client = Client([target.address])
            away = next(member for member in target.ensemble.voters if member.mode() == "follower" and member is not target.server)
            results[skips] = change.reconfig(client, leaving=str(away.number) if trial.role != OBSERVER else "3")[0]
            config = change.config(client) if skips == "yes" else ""
            results[f"{skips}: members"] = config.count("server.") or None
            target.is_calm = skips == "no"
            client.socket.close()
    trial.say(f"reconfig by any client, with skipACL and without: {results}")
    assert results["yes"] == 0 and results["no"] == NO_AUTH, "these results differ from Java's"


def distant_member(trial):
    """A member with a round trip of 100 ms and 5 % packet loss, under load: no election, and it keeps up."""
    # This runs in a child process, because it moves to another network namespace and can't move back.
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = distant_member_inside(trial)
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"    {type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})", flush=True)
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, "the reason is above"


def distant_member_inside(trial):
    if why := network.leave_machine():
        trial.say(f"skipped: {why}")
        return 0
    wires = network.Namespaces()
    wires.private = True
    kinds, command = ("jjj", "true") if trial.is_java else ("ooo", trial.command)
    cluster = Cluster(kinds, command, wires, ["syncLimit=20"], has_small_disks=False)  # --long writes more than these hold.
    try:
        cluster.start()
        leader = until("a leader", cluster.leader)
        follower = next(member for member in cluster.members if member is not leader)
        before = elections(cluster.members)
        for name, far in (("no delay", None), ("a distant follower", follower), ("a distant leader", leader)):
            if far:
                rest = [member.number for member in cluster.members if member is not far]
                wires.set([far.number], rest, loss=0.05, delay_ms=50)  # In each direction, so the round trip is 100 ms.
            near = [member.address for member in cluster.members if member is not far]
            with Beside(near[0], pause=0.05) as beside, Writers(near, 4, 1000, window=8) as writers:
                time.sleep(trial.of(4, 120))
            trial.say(f"{name}: {writers.words()}; {beside.words()}; elections {before} to {elections(cluster.members)}")
            assert elections(cluster.members) == before, f"there was an election with {name}"
            wires.heal()
        until("all members have the same zxid", lambda: len({member.zxid() for member in cluster.members}) == 1)
        return 0
    finally:
        cluster.end_all()
        shutil.rmtree(cluster.folder, ignore_errors=True)
