"""Starts with what is missing or wrong, and what changes while the server runs."""

import subprocess

from ear import WHO_AM_I, identities


def ended(server, within=30):
    """The exit code and the log of a server that does not start."""
    with server.log.open("a") as log:
        process = subprocess.Popen([*server.command, server.folder / "zoo.cfg"], cwd=server.folder, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, env=server.environment)
    try:
        return process.wait(within), server.log.read_text()
    finally:
        process.kill()


# rows: C-221 C-222 C-264
def refused(world, commands):
    empty = world.folder / "empty.keytab"
    empty.write_bytes(b"\5\2")
    no_realm = world.folder / "no-realm.conf"
    no_realm.write_text("[libdefaults]\n dns_lookup_realm = false\n")
    here = "zookeeper/localhost@OXKEEPER.TEST"
    for kind, made, text in [
        ("keytab that can't be read", {"keytab": world.folder}, str(world.folder)),
        ("file that is no keytab", {"keytab": no_realm}, str(no_realm)),
        ("principal that is not in the keytab", {"principal": "zookeeper/elsewhere@OXKEEPER.TEST"}, "zookeeper/elsewhere@OXKEEPER.TEST"),
        ("keytab that is missing", {"keytab": world.folder / "none.keytab"}, "none.keytab"),
        ("keytab without keys", {"keytab": empty}, "empty.keytab"),
        ("malformed rules", {"settings": ["security.auth_to_local=RULE:[1:$1](*)"]}, "security.auth_to_local"),
        ("no default realm", {"settings": ["requireKerberosConfig=true"], "flags": [f"-Djava.security.krb5.conf={no_realm}"]}, "default_realm"),
    ]:
        server = world.server(commands[1], made.get("settings", ()), made.get("flags", ()), made.get("principal", here), made.get("keytab"))
        try:
            code, log = ended(server)
            assert code == 2 and text in log, f"{kind}: exit {code}\n{server.tail()}"
        finally:
            server.remove()


# rows: C-264 U-18
def lazy(world, commands):
    """A keytab of no use: ours refuses to start. Java starts with `isInitiator=false`, as it reads the keytab for the first client; otherwise its login fails."""
    here = "zookeeper/localhost@OXKEEPER.TEST"
    for kind, keytab, principal in [("can't be read", world.folder, here), ("missing", world.folder / "none.keytab", here),
                                    ("of another principal", None, "zookeeper/elsewhere@OXKEEPER.TEST")]:
        for command, is_initiator, expected in [(commands[0], False, "starts"), (commands[0], True, 1), (commands[1], False, 2), (commands[1], True, 2)]:
            server = world.server(command, principal=principal, keytab=keytab, is_initiator=is_initiator)
            try:
                server.start()
                outcome = "starts"
            except RuntimeError:
                outcome = server.process.returncode
            finally:
                server.remove()
            assert outcome == expected, f"{kind}, {command}, isInitiator={is_initiator}: {outcome}"


# rows: C-220 U-18
def without_kdc(world, commands):
    """The server starts and accepts clients while the KDC is down: it has its key, and they have their tickets."""
    import __main__ as suite
    users = ("bob", "eve")
    for user in users:
        world.initiator(user).step()  # Asks the KDC for the ticket, which the cache keeps.
    world.realm.stop()
    server = world.server(commands[1])
    try:
        server.start()
        for user in users:
            ids = suite.login(server, world.initiator(user)).ask(90, WHO_AM_I, shown=identities).heard[-1][3]
            assert len(ids) == 2, ids
    finally:
        server.remove()
        world.realm.start()


# rows: C-264
def rotated(world, commands):
    """The keytab gets a new key while the server runs: tickets with the new key are accepted without a restart."""
    import __main__ as suite
    principal = "zookeeper/rotated"
    keytab = world.realm.add(principal)
    server = world.server(commands[1], principal=f"{principal}@OXKEEPER.TEST", keytab=keytab)
    try:
        server.start()
        for turn in range(2):
            cache = world.realm.tickets("bob", world.keytabs["bob"], f"{50 + turn}m")
            one = suite.login(server, world.initiator(cache, to=f"{principal}@OXKEEPER.TEST"))
            ids = one.ask(90, WHO_AM_I, shown=identities).heard[-1][3]
            assert ("sasl", "bob@OXKEEPER.TEST") in ids, ids
            world.realm.rotate(principal, keytab)
    finally:
        server.remove()


WORK = {"starts that are refused": refused, "keytabs of no use": lazy, "KDC that is down": without_kdc, "keytab that is replaced": rotated}
