"""No secret is shown: members with marked passwords go through every failure at level trace, and their logs, words, `config check` and refused starts
are searched for the marks, as text, in hex, in base64 and as lists of numbers."""

import base64
import concurrent.futures
import contextlib
import hashlib
import os
import struct
import subprocess

import access
import stages
import strangers
from digest_md5 import respond
from ear import AUTH, SASL
from factory import PASSWORD
from members import Failed
from peer import SERVED
from wire import buffer

SUPER, DIGEST, WRONG = "Mark-of-super", "Mark-of-digest", "Mark-of-wrong"
MARKS = [stages.SASL_PASSWORD, PASSWORD, access.SASL_PASSWORD, SUPER, DIGEST, WRONG]
SUPER_DIGEST = base64.b64encode(hashlib.sha1(f"super:{DIGEST}".encode()).digest()).decode()
SETTINGS = [*access.SETTINGS, f"DigestAuthenticationProvider.superDigest=super:{SUPER_DIGEST}"]
FLAGS = [f"zookeeper.SASLAuthenticationProvider.superPassword={SUPER}"]
WORDS = ["conf", "cons", "dump", "envi", "mntr", "srvr", "stat", "wchc", "wchp", "dirs", "isro", "gtmk"]


def shapes(mark):
    data = mark.encode()
    yield from (mark, data.hex(), ", ".join(map(str, data)), ",".join(f"{byte:02x}" for byte in data))
    # As base64 has it wherever the mark begins, without the characters that neighbours share.
    yield from (base64.b64encode(bytes(before) + data).decode()[before * 4 // 3 + 2:-4] for before in range(3))


def search(what, text):
    found = [mark for mark in [*MARKS, SUPER_DIGEST] for shape in shapes(mark) if shape in text]
    if found:
        lines = [line[:300] for line in text.splitlines() if any(shape in line for shape in shapes(found[0]))]
        raise Failed(f"{what} shows {found}: {lines[:3]}")


def clients_that_fail(member):
    """On the plain port and in TLS: SASL with a wrong password, as an unknown user, with rubbish; a wrong digest; and the right ones."""
    count = 0
    for kind in ("anonymous", "x509"):
        for user, password in ((access.USER, WRONG), ("nobody", WRONG), ("super", SUPER), (access.USER, access.SASL_PASSWORD)):
            one, tokens = access.client(member, kind), []
            one.ask(1, SASL, buffer(b""), lambda body, tokens=tokens: tokens.append(body[4:]))
            one.ask(2, SASL, buffer(respond(tokens[0], user, password)))
            one.socket.close()
        for scheme, proof in (("digest", f"super:{DIGEST}"), ("digest", f"bob:{WRONG}"), ("sasl", WRONG), ("digest", WRONG)):
            one = access.client(member, kind)
            one.send(-4, AUTH, struct.pack(">i", 0) + buffer(scheme.encode()) + buffer(proof.encode()))
            one.hear()
            one.socket.close()
        one = access.client(member, kind)
        one.send(1, SASL, buffer(WRONG.encode() * 100))
        one.hear()
        one.socket.close()
        count += 9
    return count


def servers_that_fail(ensemble):
    """The rows of hand-made servers, with TLS and without."""
    rows = [(say, over) for _, say, *_ in strangers.SASL_ROWS for over in ("client", None)]
    rows += [(strangers.plain, over) for _, over, *_ in strangers.TLS_ROWS]
    rows.append((strangers.digest(stages.USER, WRONG), "client"))
    jobs = [(member, port, say, over) for member in ensemble.members for port in (strangers.ELECTION, strangers.LEARNER) for say, over in rows]
    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        outcomes = list(pool.map(lambda job: strangers.row(job[2])(job[0], job[1], job[3]), jobs))
    assert any(outcome.endswith(SERVED) for outcome in outcomes), outcomes
    return len(jobs)


def starts_that_fail(member):
    """What is printed, and whether it is a refusal, for settings with a wrong password each."""
    text, jaas = (member.folder / "zoo.cfg").read_text(), (member.folder / "jaas.conf").read_text()
    wrong = member.folder / "wrong"
    wrong.write_text(WRONG + "\n")
    jks = {f"ssl.{side}.password": WRONG for side in ("keyStore", "quorum.keyStore", "trustStore", "quorum.trustStore")}
    cases = [(text.replace(f"{key}={PASSWORD}", f"{key}={wrong}"), jaas) for key, wrong in jks.items()]
    cases += [(text + f"{key}Path={wrong}\n", jaas) for key in jks]
    cases += [(text, jaas.replace(mark, WRONG, 1)) for mark in (f'{stages.SASL_PASSWORD}"',)]  # The quote of the password is left open.
    cases += [(text, jaas + f'Other {{ some.Module required password="{WRONG}" }};\n'), (text, jaas + f'Other {{ password="{WRONG}";\n')]
    for at, (settings, login) in enumerate(cases):
        (member.folder / "zoo.cfg").write_text(settings)
        (member.folder / "jaas.conf").write_text(login)
        assert (settings, login) != (text, jaas), f"case {at} changes nothing"
        done = run(member, member.folder / "zoo.cfg")
        assert done.returncode == 2, f"case {at}: {done.returncode}\n{done.stdout}{done.stderr}"
        search(f"refused start {at}", done.stdout + done.stderr)
    (member.folder / "zoo.cfg").write_text(text)
    (member.folder / "jaas.conf").write_text(jaas)
    return len(cases)


def run(member, *words):
    flags = " ".join(f"-D{line}" for line in member.flags)
    return subprocess.run([*member.command(), *map(str, words)], cwd=member.folder, capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL, env={**os.environ, "SERVER_JVMFLAGS": flags})


def check(ensemble):
    """All of it; the members run, and end."""
    counts = [servers_that_fail(ensemble), sum(clients_that_fail(member) for member in ensemble.members)]
    ensemble.wait("after failures")
    for member in ensemble.members:
        for word in WORDS:
            search(f"{word} of {member}", member.word(word))
        checked = run(member, "config", "check", member.folder / "zoo.cfg")
        assert "ssl.keyStore.location" in checked.stdout, checked
        search(f"config check of {member}", checked.stdout + checked.stderr)
    ensemble.stop()
    counts.append(starts_that_fail(ensemble.members[0]))
    size = 0
    for member in ensemble.members:
        text = member.log.read_text(errors="replace")
        assert "TRACE" in text or "DEBUG" in text, f"{member} logs no more than usual"
        size += len(text)
        search(f"the log of {member}", text)
    with contextlib.suppress(FileNotFoundError):
        (ensemble.members[0].folder / "wrong").unlink()
    ensemble.start()
    return f"{counts[0]} servers, {counts[1]} clients and {counts[2]} starts that fail, {size >> 10} KB of log without a secret"
