"""Real clients with their own DIGEST-MD5: each is told its id, stores a znode that it alone may read, and is refused with a wrong password."""

import pathlib
import subprocess
import tempfile

import sasl_clients
from server import jars, java

PATIENCE = 60
LOGIN = 'Client {{ org.apache.zookeeper.server.auth.DigestLoginModule required username="{}" password="{}"; }};\n'


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


def kazoo(server, user, password):
    options = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    sasl_clients.kazoo(server, user, options, {**options, "password": "wrong"})


def c(server, user, password):
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, word in (("right", password), ("wrong", "wrong")):
            files[name] = pathlib.Path(folder) / name
            files[name].write_text(word)
        sasl = ("DIGEST-MD5", "zk-sasl-md5", user)
        sasl_clients.c(server, user, (*sasl, files["right"]), (*sasl, files["wrong"]))


WORK = {"zkCli": zkcli, "kazoo": kazoo, "C": c}
