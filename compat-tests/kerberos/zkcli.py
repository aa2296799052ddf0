"""ZooKeeper's own client with Java's Krb5LoginModule: is told its id, stores a znode that it alone may read, and fails without a ticket."""

import pathlib
import subprocess
import tempfile

from server import jars, java

PATIENCE = 60
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
SERVICE = "-Dzookeeper.server.principal=zookeeper/localhost@OXKEEPER.TEST"


def said(world, server, options, *command):
    with tempfile.TemporaryDirectory() as folder:
        login = pathlib.Path(folder) / "jaas.conf"
        login.write_text(f"Client {{ {MODULE} {options}; }};\n")
        flags = [f"-Djava.security.auth.login.config={login}", f"-Djava.security.krb5.conf={world.realm.conf}", SERVICE] if options else []
        words = java(*flags, "-cp", jars(), "org.apache.zookeeper.ZooKeeperMain", "-server", server.address, *command)
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        return done.stdout + done.stderr


def check(world, server, options, name):
    def expect(text, options, *command):
        output = said(world, server, options, *command)
        assert text in output, f"{command}: {output}"

    expect("sasl: bob@OXKEEPER.TEST", options, "whoami")
    expect("Created", options, "create", f"/{name}", "secret", "auth::cdrwa")
    expect("'sasl,'bob@OXKEEPER.TEST", options, "getAcl", f"/{name}")
    expect("secret", options, "get", f"/{name}")
    expect("Insufficient permission", None, "get", f"/{name}")


# rows: P-60a U-18 C-264
def keytab_and_cache(world, commands):
    server = world.server(commands[1])
    try:
        server.start()
        keytab = f'useKeyTab=true keyTab="{world.keytabs["bob"]}" storeKey=true principal="bob@OXKEEPER.TEST"'
        check(world, server, keytab, "keytab")
        tickets = world.tickets["bob"]
        check(world, server, f'useTicketCache=true doNotPrompt=true ticketCache="{tickets}" principal="bob@OXKEEPER.TEST"', "cache")
        absent = 'useTicketCache=true doNotPrompt=true ticketCache="/nonexistent"'
        output = said(world, server, absent, "get", "/keytab")
        assert "secret" not in output, output
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{server.tail()}") from error
    finally:
        server.remove()


WORK = {"zkCli": keytab_and_cache}
