"""kazoo and the C client with SASL, on a plain port or in TLS: each stores a znode that its id alone may read, and is refused with a wrong password."""

import json
import os
import pathlib
import subprocess
import sys

import cache

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE / name) for name in ("clients", "tls")]
import build  # noqa: E402
import factory  # noqa: E402

PATIENCE = 60
KAZOO = """
import json, sys
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError
from kazoo.security import make_acl

given = json.loads(sys.argv[1])

def client(options):
    return KazooClient(hosts=given["hosts"], sasl_options=options, **given["tls"])

one = client(given["sasl"])
one.start(timeout=20)
one.create(given["path"], b"x", acl=[make_acl("sasl", given["id"], all=True)])
assert one.get(given["path"])[0] == b"x"
anyone = client(None)
anyone.start(timeout=20)
try:
    anyone.get(given["path"])
    raise AssertionError("read without an id")
except NoAuthError:
    pass
if given["wrong"]:
    wrong = client(given["wrong"])
    try:
        wrong.start(timeout=20)
        wrong.get(given["path"])
        raise SystemExit("served with a wrong password")
    except NoAuthError:
        raise SystemExit("served without an id") from None
    except (KazooException, wrong.handler.timeout_exception):
        pass
one.stop()
anyone.stop()
"""


def secured(port):
    """Lines of a zoo.cfg with this secure port."""
    made = factory.folder()
    return [f"secureClientPort={port}", "secureClientPortAddress=127.0.0.1", f"ssl.keyStore.location={made / 'rsa.jks'}",
            f"ssl.keyStore.password={factory.PASSWORD}", f"ssl.trustStore.location={made / 'trust.jks'}", f"ssl.trustStore.password={factory.PASSWORD}"]


def ports(server):
    """The plain port and the secure one, each with whether it has TLS."""
    return (server.port, False), (server.secure, True)


def kazoo(server, name, sasl, wrong=None, host="127.0.0.1", **environment):
    """`name`: the client's id. `sasl`, `wrong`: kazoo's options, right and with a wrong password. `environment`: more of it."""
    made = factory.folder()
    tls = {"use_ssl": True, "ca": f"{made}/trust.pem", "certfile": f"{made}/client.pem", "keyfile": f"{made}/client.key"}
    for port, has_tls in ports(server):
        given = {"hosts": f"{host}:{port}", "path": f"/kazoo-{port}", "id": name, "sasl": sasl, "wrong": wrong, "tls": tls if has_tls else {}}
        done = subprocess.run([cache.venv_python(), "-c", KAZOO, json.dumps(given)], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, **environment})
        assert done.returncode == 0, f"{'TLS' if has_tls else 'plain'}: {done.stdout}{done.stderr}"


def c(server, name, sasl, wrong=None, **environment):
    """`sasl`, `wrong`: mechanism, server's name, user, file of the password."""
    if not (program := build.c_secure()):
        return
    made = factory.folder()
    for port, has_tls in ports(server):
        def said(what, *sasl, port=port, has_tls=has_tls):
            # In TLS the list of `auth` has the certificate's id, too, so clients without another id show another certificate.
            shown = "client" if sasl else "ec-client"
            certificates = f"{made}/trust.pem,{made}/{shown}.pem,{made}/{shown}.key,none" if has_tls else "-"
            words = [program, f"127.0.0.1:{port}", what, f"/c-{port}", certificates, *sasl]
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **environment})
            return done.stdout.strip() or done.stderr

        served, refused = {"0", "x", f"sasl:{name}"}, [((), "-102"), (wrong, "authentication failed")]
        for what in ("create", "get"):
            output = said(what, *sasl)
            assert served <= set(output.split()), f"{'TLS' if has_tls else 'plain'}, {what}: {output}"
        for shown, answer in refused:
            output = answer if shown is None else said("get", *shown)
            assert output == answer, f"{'TLS' if has_tls else 'plain'}, {shown}: {output}"
