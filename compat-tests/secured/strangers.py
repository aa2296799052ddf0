"""Peers that must be refused: hand-made servers that dial the members' ports, row by row, and members with wrong secrets."""

import concurrent.futures
import itertools
import signal
import struct
import time

import stages
from members import Failed, until
from peer import ERROR, MAGIC, REFUSED, SERVED, WAITS, Peer, hello, learner_info
from voter import FORM, LOOKING, NOTIFICATION

ELECTION, LEARNER = "election port", "learner port"
NUMBERS = itertools.count(100)  # Each hand-made server has an id of its own, above the members': then it need not be dialed back.
SECONDS = 15  # Longer than ours wait for a silent peer.


def opened(member, port, over_tls):
    """A connection at the place where SASL begins, and what the server says after it."""
    number = next(NUMBERS)
    peer = Peer(member, member.election_port if port is ELECTION else member.quorum_port, SECONDS, over_tls)
    if port is LEARNER:
        return peer, learner_info(number)
    peer.send(hello(number, member.port))
    vote = NOTIFICATION.pack(LOOKING, number, 0, 1, 0, FORM)
    return peer, struct.pack(">i", len(vote)) + vote


def row(say):
    """`say(peer)` is the peer's half of SASL; then it goes on as a server does."""

    def outcome(member, port, over_tls=None):
        said = ""
        peer = None
        try:
            peer, rest = opened(member, port, over_tls)
            said = say(peer)
            if said == "silent":
                return peer.outcome()
            peer.send(rest)
            return f"{said} {peer.outcome()}".strip()
        except (OSError, EOFError):
            return f"{said} {REFUSED}".strip()
        finally:
            if peer:
                peer.close()

    return outcome


def plain(peer):
    return ""


def silent(peer):
    return "silent"


def half_magic(peer):
    peer.send(MAGIC[:5])
    return "silent"


def sends(data):
    def say(peer):
        peer.send(data)
        return "silent"

    return say


def digest(*words, **broken):
    return lambda peer: {0: "goes on", 1: "success", ERROR: "error"}[peer.authenticate(*words, **broken)]


def replayed(peer):
    """A response to the challenge of another exchange."""
    return digest(nonce="x" * 40)(peer)


# What each row gives if SASL is required, and if it is not.
SASL_ROWS = [
    ("the right password", digest(), f"success {SERVED}", f"success {SERVED}"),
    ("a wrong password", digest("zk", "wrong"), f"error {REFUSED}", f"error {SERVED}"),
    ("an unknown user", digest("nobody"), f"error {REFUSED}", f"error {SERVED}"),
    ("another user's authzid", digest(authzid="root"), f"error {REFUSED}", f"error {SERVED}"),
    ("the realm of clients", digest(realm="zk-sasl-md5"), f"error {REFUSED}", f"error {SERVED}"),
    ("the service of clients", digest(uri="zookeeper/zk-sasl-md5"), f"error {REFUSED}", f"error {SERVED}"),
    ("a response to another challenge", replayed, f"error {REFUSED}", f"error {SERVED}"),
    ("another nonce count", digest(nc="00000002"), f"error {REFUSED}", f"error {SERVED}"),
    ("auth-int", digest(qop="auth-int"), f"error {REFUSED}", f"error {SERVED}"),
    ("no response", digest(left_out=("response",)), f"error {REFUSED}", f"error {SERVED}"),
    ("plain", plain, REFUSED, SERVED),
    ("a token of 1 MB", sends(MAGIC + struct.pack(">ii", 0, 2_000_000) + bytes(100_000)), REFUSED, REFUSED),
    ("an unknown status", sends(MAGIC + struct.pack(">ii", 7, 0)), REFUSED, REFUSED),
    ("half of the magic", half_magic, REFUSED, REFUSED),
    ("silence", silent, REFUSED, REFUSED),
]
# What Java does otherwise: it does not look at a packet's status, and what it serves here is a challenge; its leader waits for initLimit.
OF_JAVA = {("an unknown status", ELECTION): SERVED, ("an unknown status", LEARNER): SERVED, ("half of the magic", LEARNER): WAITS,
           ("silence", LEARNER): WAITS}
# The same with TLS alone, and with portUnification.
TLS_ROWS = [
    ("plain", None, REFUSED, SERVED),
    ("a certificate", "client", SERVED, SERVED),
    ("no certificate", "none", REFUSED, REFUSED),
    ("an unknown authority's", "stranger", REFUSED, REFUSED),
    ("expired", "expired", REFUSED, REFUSED),
]


def dial_every_port(ensemble, rows, is_required):
    """Plays the rows at the election port of every member and at the learner port of the leader."""
    places = [(member, ELECTION) for member in ensemble.members] + [(ensemble.leader(), LEARNER)]
    jobs = [(member, port, *row) for member, port in places for row in rows]
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for (member, port, name, _, *wanted), outcome in zip(jobs, pool.map(lambda job: job[3](job[0], job[1]), jobs)):
            expected = wanted[0 if is_required else 1]
            if member.kind == "j":
                expected = OF_JAVA.get((name, port), expected)
            if outcome != expected:
                wrong.append(f"{member}, {port}: {name}: {outcome}, expected {expected}")
    ensemble.wait("after hand-made servers")
    if wrong:
        raise Failed("\n".join(wrong))
    return f"{len(jobs)} rows"


def sasl_rows():
    return [(name, row(say), *wanted) for name, say, *wanted in SASL_ROWS]


def tls_rows():
    return [(name, lambda member, port, over=over: row(plain)(member, port, over), *wanted) for name, over, *wanted in TLS_ROWS]


def wrong_password(ensemble, member):
    stages.write_jaas(member, shown_password="wrong")


def unknown_user(ensemble, member):
    stages.write_jaas(member, shown_user="nobody")


def without_sasl(ensemble, member):
    ensemble.set(member, stages.PLAIN)


def keep_out(ensemble, members, stage, harms):
    """Each of these members is started with something wrong: it stays outside, the others go on, and it joins when that is mended."""
    count = 0
    for member in members:
        for harm in harms:
            ensemble.stop(member)
            harm(ensemble, member)
            ensemble.wait(f"all but {member}")
            marks = {other: other.log.stat().st_size for other in ensemble.members if other is not member}
            member.launch()
            until(f"{member} with {harm.__name__} is refused", lambda: any(
                is_refusal(ensemble.log_since(other, mark)) for other, mark in marks.items()))
            time.sleep(1)
            assert member.mode() == "", f"{member} with {harm.__name__} serves as {member.mode()}"
            ensemble.stop(member, how=signal.SIGKILL)
            stages.write_jaas(member)
            ensemble.set(member, stage)
            ensemble.start()
            count += 1
    return f"{count} times kept out"


def is_refusal(log):
    words = ["SASL failed", "does not authenticate itself", "Failed to authenticate using SASL", "not trying to authenticate",
             "Authentication failed against", "refused SASL", "TLS handshake refused", "SSLHandshakeException", "not an SSL/TLS"]
    return any(word in log for word in words)
