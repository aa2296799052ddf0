"""Real clients with their own DIGEST-MD5: each is told its id, stores a znode that it alone may read, and is refused with a wrong password."""

import pathlib
import subprocess
import tempfile

import cache
from server import jars, java

PATIENCE = 60
LOGIN = 'Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username="{}" password="{}"; }};\n'
KAZOO = """
import sys
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError
from kazoo.security import make_acl

def client(password):
    options = {"mechanism": "DIGEST-MD5", "username": "bob", "password": password} if password else None
    return KazooClient(hosts=sys.argv[1], sasl_options=options)

bob = client(sys.argv[2])
bob.start(timeout=20)
bob.create("/kazoo", b"x", acl=[make_acl("sasl", "bob", all=True)])
assert bob.get("/kazoo")[0] == b"x"
anyone = client(None)
anyone.start(timeout=20)
try:
    anyone.get("/kazoo")
    raise AssertionError("read without an id")
except NoAuthError:
    pass
wrong = client("wrong")
try:
    wrong.start(timeout=20)
    wrong.get("/kazoo")
    raise SystemExit("served with a wrong password")
except NoAuthError:
    raise SystemExit("served without an id") from None
except (KazooException, wrong.handler.timeout_exception):
    pass
bob.stop()
anyone.stop()
"""


def zkcli(server, user, password):
    def said(word, *command):
        with tempfile.TemporaryDirectory() as folder:
            login = pathlib.Path(folder) / "jaas.conf"
            login.write_text(LOGIN.format(user, word))
            flags = [f"-Djava.security.auth.login.config={login}", "-Dzookeeper.fips-mode=false"] if word else []
            done = subprocess.run(java(*flags, "-cp", jars(), "org.apache.zookeeper.ZooKeeperMain", "-server", server.address, *command),
                                  capture_output=True, text=True, timeout=PATIENCE)
            return done.stdout + done.stderr

    def expect(text, word, *command):
        output = said(word, *command)
        assert text in output, f"{command}: {output}"

    expect(f"sasl: {user}", password, "whoami")
    expect("Created /java", password, "create", "/java", "secret", "auth::cdrwa")
    expect(f"'sasl,'{user}", password, "getAcl", "/java")
    expect("secret", password, "get", "/java")
    expect("Insufficient permission", None, "get", "/java")
    output = said("wrong", "get", "/java")
    assert "secret" not in output and ("AuthFailed" in output or "Authentication" in output), output


def kazoo(server, _user, password):
    done = subprocess.run([cache.venv_python(), "-c", KAZOO, server.address, password], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


WORK = {"zkCli": zkcli, "kazoo": kazoo}
