"""kazoo and the C client with GSSAPI, by the tickets of a cache, on a plain port and in TLS. Debian's python3-kerberos is kazoo's library."""

import pathlib

import sasl_clients
from server import free_port

MODULES, PLUGINS = pathlib.Path("/usr/lib/python3/dist-packages"), pathlib.Path("/usr/lib")
BOB = "bob@OXKEEPER.TEST"


def with_tickets(world, commands, check):
    """`check(server, environment)` with a server that has both ports."""
    server = world.server(commands[1], sasl_clients.secured(free_port()))
    try:
        check(server.start(), {"KRB5_CONFIG": str(world.realm.conf), "KRB5CCNAME": f"FILE:{world.tickets['bob']}"})
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{server.tail()}") from error
    finally:
        server.remove()


# rows: P-60a U-18
def kazoo(world, commands):
    if not list(MODULES.glob("kerberos*.so")):
        raise FileNotFoundError("python3-kerberos is not installed")
    options = {"mechanism": "GSSAPI", "service": "zookeeper"}
    with_tickets(world, commands, lambda server, environment: sasl_clients.kazoo(
        server, BOB, options, host="localhost", PYTHONPATH=str(MODULES), **environment))


# rows: P-60a U-18
def c(world, commands):
    if not list(PLUGINS.glob("*/sasl2/libgssapiv2.so")):
        raise FileNotFoundError("libsasl2-modules-gssapi-mit is not installed")
    with_tickets(world, commands, lambda server, environment: sasl_clients.c(
        server, BOB, ("GSSAPI", "localhost", "bob", "-"), **environment))


WORK = {"kazoo": kazoo, "C": c}
