"""Settings of TLS: suites that fit the other kind of key, the settings of `ssl.quorum.` that client ports have too, limits of handshakes, passwords in files."""

import __main__ as suite
import atexit
import contextlib
import pathlib
import shutil
import ssl
import tempfile
import time

from factory import PASSWORD
from peers import Fake, Looking, answered, connect
from peers import stores as member_stores
from server import free_port

SERVED, REFUSED, NO_START = "served", "refused", "no start"
PATIENCE = 30


def groups():
    yield from key_groups()
    yield from member_groups()
    yield from throttle_groups()
    yield from password_groups()


# rows: C-192
def key_groups():
    """Suites of TLS 1.2 that fit the other kind of key."""
    refused = "a server whose key fits no suite is refused at the start"
    of = {"rsa": "ECDHE-RSA-AES256-GCM-SHA384", "ec": "ECDHE-ECDSA-AES256-GCM-SHA384"}
    names = {"rsa": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ec": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}
    for key, other in (("rsa", "ec"), ("ec", "rsa")):
        lines = [*suite.stores(f"{key}.jks"), "enabledProtocols=TLSv1.2,TLSv1.3"]
        yield f"{key} key, suites of {other} keys", [*lines, f"ciphersuites={names[other]}"], [
            ("client", suite.client(), REFUSED, NO_START, refused), ("client of that suite", suite.client(high="1.2", suites=of[other]), REFUSED, NO_START, refused)]
        yield f"{key} key, suites of {other} keys and of TLS 1.3", [*lines, f"ciphersuites={names[other]},TLS_AES_128_GCM_SHA256"], [
            ("TLS 1.3", suite.client(low="1.3"), SERVED), ("TLS 1.2", suite.client(high="1.2", suites=of[other]), REFUSED)]


def pausing(number, seconds, context=None):
    """Row: this member dials the server and keeps silent for a while before it says anything."""

    def attempt(server):
        hello = server.fakes[number].hello()
        try:
            with connect(server.election) as plain:
                if suite.is_closed(plain, seconds):
                    return REFUSED
                plain.settimeout(PATIENCE)
                if context is None:
                    return answered(plain, hello)
                with context.wrap_socket(plain) as stream:
                    return answered(stream, hello)
        except (OSError, ssl.SSLError):
            return REFUSED

    return attempt


# rows: C-190 C-191 C-192 C-201 C-202
def member_groups():
    """Settings of `ssl.quorum.` that client ports have too, and the time for which the first bytes are waited for."""
    tls = [*member_stores(), "sslQuorum=true"]
    for wanted, without, strange in (("none", SERVED, SERVED), ("want", SERVED, REFUSED), ("NEED", REFUSED, REFUSED)):
        yield f"members: clientAuth={wanted}", *suite.looking([*tls, f"ssl.quorum.clientAuth={wanted}"], [], [
            ("member with a certificate", suite.context("rsa"), SERVED), ("member without a certificate", suite.context(None), without),
            ("member with a certificate of an authority that is not trusted", suite.context("stranger"), strange)])
    for setting, served in (("protocol=TLSv1.2", {"1.2"}), ("protocol=TLS", {"1.2", "1.3"}), ("enabledProtocols=TLSv1.3", {"1.3"}),
                            ("enabledProtocols=TLSv1.2", {"1.2"})):
        outcomes = {version: SERVED if version in served else REFUSED for version in ("1.1", "1.2", "1.3")}
        yield f"members: {setting}", *suite.looking(
            [*tls, f"ssl.quorum.{setting}"], [(f"TLS {version}", suite.server_context("rsa", low=version, high=version), "127.0.0.1", outcome)
                                              for version, outcome in outcomes.items()],
            [(f"TLS {version}", suite.context("rsa", low=version, high=version), outcome) for version, outcome in outcomes.items()])
    suites = {"ECDHE-RSA-AES256-GCM-SHA384": SERVED, "ECDHE-RSA-AES128-GCM-SHA256": REFUSED}
    yield "members: ciphersuites", *suite.looking(
        [*tls, "ssl.quorum.enabledProtocols=TLSv1.2", "ssl.quorum.ciphersuites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"],
        [(name, suite.server_context("rsa", high="1.2", suites=name), "127.0.0.1", outcome) for name, outcome in suites.items()],
        [(name, suite.context("rsa", high="1.2", suites=name), outcome) for name, outcome in suites.items()])
    # Silence longer than the timeout counts as plain. A group for each member: while Java waits for one, it accepts no other.
    for timeout, seconds, with_tls, outcome in ((300, 2, False, SERVED), (300, 2, True, REFUSED), (60_000, 7, True, SERVED), (0, 2, True, SERVED)):
        kind = "with TLS" if with_tls else "plain"
        lines = [*tls, "portUnification=true", "syncLimit=30", f"ssl.quorum.handshakeDetectionTimeoutMillis={timeout}"]
        yield f"members: handshakeDetectionTimeoutMillis={timeout}, {kind}", lambda command, lines=lines: Looking(command, lines, [Fake(2)]), [
            ("member that is silent at first", pausing(2, seconds, suite.context("rsa") if with_tls else None), outcome)]


# rows: C-120 C-121
def throttle_groups():
    def behind(silent_ones, port="secure"):
        """A client that comes while others have not ended their handshakes."""

        def attempt(server):
            with contextlib.ExitStack() as held:
                for _ in range(silent_ones):
                    held.enter_context(connect(getattr(server, port))).sendall(suite.client_hello()[:20])
                time.sleep(1)  # A connection counts when a thread takes it.
                return suite.client(port=port)(server)

        return attempt

    nothing = "Java reads the limit before it knows that the port is a secure one, so that it counts with client.portUnification alone"
    for limit, outcome in ((2, REFUSED), (3, SERVED), (-1, SERVED)):
        lines = [*suite.stores(), f"=netty.server.outstandingHandshake.limit={limit}"]
        yield f"outstandingHandshake.limit={limit}", lines, [
            ("client after two unfinished handshakes", behind(2), SERVED, *([outcome, nothing] if outcome != SERVED else []))]
        yield f"outstandingHandshake.limit={limit} and client.portUnification", [*lines, "=client.portUnification=true"], [
            ("client after two unfinished handshakes", behind(2, "port"), outcome)]

    def shaken(server):
        """Whether a server without a leader gets as far as a handshake; the session has to wait for a leader."""
        try:
            with connect(server.secure) as plain, suite.context("client").wrap_socket(plain):
                return SERVED
        except (OSError, ssl.SSLError):
            return REFUSED

    for drops, outcome in (("true", REFUSED), ("false", SERVED)):
        yield f"earlyDropSecureConnectionHandshakes={drops}", lambda command, drops=drops: Waiting(command, drops), [("client", shaken, outcome)]


class Waiting(Looking):
    """A member without a leader, with a secure port for clients."""

    def __init__(self, command, drops):
        lines = [f"secureClientPort={free_port()}", "secureClientPortAddress=127.0.0.1", *(f"ssl.{line}" for line in suite.stores()),
                 f"netty.server.earlyDropSecureConnectionHandshakes={drops}", "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"]
        super().__init__(command, lines, [Fake(2)])


# rows: C-193b C-194b
def password_groups():
    """Passwords in files, with which they win over a password that is set."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-passwords-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for name, text in (("right", PASSWORD), ("newline", f"{PASSWORD}\n"), ("newlines", f"{PASSWORD}\n\n"), ("wrong", "wrong-word")):
        (made / name).write_text(text)
    refused = "a store that can't be used is refused at the start"
    for name, outcome in (("right", (SERVED,)), ("newline", (SERVED,)), ("newlines", (REFUSED, NO_START, refused)), ("wrong", (REFUSED, NO_START, refused)),
                          ("none", (REFUSED, NO_START, refused))):
        paths = [f"{store}Store.passwordPath={made / name}" for store in ("key", "trust")]
        yield f"passwordPath: {name}", [*suite.stores(), *paths], [("client", suite.client(), *outcome)]
        if name != "none":  # Java accepts and says nothing.
            yield f"members: passwordPath: {name}", *suite.looking([*member_stores(), *(f"ssl.quorum.{path}" for path in paths), "sslQuorum=true"], [], [
                ("member", suite.context("rsa"), *outcome)])
