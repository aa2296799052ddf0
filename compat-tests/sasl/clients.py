"""Real clients with their own DIGEST-MD5: each is told its id, stores a znode that it alone may read, and is refused with a wrong password."""

import os
import pathlib
import subprocess
import tempfile

import sasl_clients
import build
from factory import folder
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


def rust(server, user, password):
    """The crate zookeeper-client, on the plain port and in TLS, where its certificate is an identity too."""
    for port, has_tls in sasl_clients.ports(server):
        def said(login, *commands, port=port, has_tls=has_tls):
            environment = {**os.environ, **({"SASL_LOGIN": login} if login else {}), **({"TLS_CERTIFICATES": str(folder())} if has_tls else {})}
            words = "\n".join([f"connect localhost:{port} 8000", *commands]) + "\n"
            try:
                done = subprocess.run([build.rust()], input=words, capture_output=True, text=True, timeout=PATIENCE, env=environment)
            except subprocess.TimeoutExpired as error:
                return str(error.stdout)
            return done.stdout + done.stderr

        node = f"/rust-{port}"
        output = said(f"{user}:{password}", "whoami", f"create-own {node} secret", f"get {node}")
        assert f"sasl:{user}" in output and "ok secret 0" in output, f"TLS {has_tls}: {output}"
        if not has_tls:  # Elsewhere the list has the certificate's id, too.
            assert "error -102" in (output := said(None, f"get {node}")), output
        output = said(f"{user}:wrong", f"get {node}")
        assert "secret" not in output and "error" in output, f"TLS {has_tls}: {output}"


WORK = {"zkCli": zkcli, "kazoo": kazoo, "C": c, "Rust": rust}
