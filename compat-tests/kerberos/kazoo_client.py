"""kazoo with GSSAPI, by the tickets of a cache: is told its id, and stores what it alone may read. Debian's python3-kerberos is its library."""

import os
import pathlib
import subprocess

import cache

MODULES = pathlib.Path("/usr/lib/python3/dist-packages")
PATIENCE = 60
PROGRAM = """
import sys
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl

bob = KazooClient(hosts=sys.argv[1], sasl_options={"mechanism": "GSSAPI", "service": "zookeeper"})
bob.start(timeout=20)
bob.create("/kazoo", b"x", acl=[make_acl("sasl", "bob@OXKEEPER.TEST", all=True)])
assert bob.get("/kazoo")[0] == b"x"
anyone = KazooClient(hosts=sys.argv[1])
anyone.start(timeout=20)
try:
    anyone.get("/kazoo")
    raise AssertionError("read without an id")
except NoAuthError:
    pass
bob.stop()
anyone.stop()
"""


# rows: P-60a U-18
def tickets(world, commands):
    if not list(MODULES.glob("kerberos*.so")):
        raise FileNotFoundError("python3-kerberos is not installed")
    server = world.server(commands[1])
    environment = {**os.environ, "KRB5_CONFIG": str(world.realm.conf), "KRB5CCNAME": f"FILE:{world.tickets['bob']}", "PYTHONPATH": str(MODULES)}
    try:
        server.start()
        done = subprocess.run([cache.venv_python(), "-c", PROGRAM, f"localhost:{server.port}"], capture_output=True, text=True, timeout=PATIENCE,
                              env=environment)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{server.tail()}"
    finally:
        server.remove()


WORK = {"kazoo": tickets}
