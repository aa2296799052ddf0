"""Every kind of client through every member against every kind of access list: identities go with the requests that members forward."""

import socket
import struct

from digest_md5 import respond
from ear import GET_ACL, SASL, SYNC, WHO_AM_I, Ear, acl, create, identities, path
from members import Failed
from secure_client import context_of
from wire import CREATE, GET, SET, buffer

SUBJECT, SUPER, USER, SASL_PASSWORD = "O=oxkeeper,CN=client", "O=oxkeeper,CN=ec-client", "bob", "bobsecret"
JAAS = f'Server {{ org.apache.zookeeper.server.auth.DigestLoginModule required user_{USER}="{SASL_PASSWORD}"; }};\n'
SETTINGS = ["authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", f"X509AuthenticationProvider.superUser={SUPER}"]
KINDS = ("anonymous", "x509", "sasl", "x509 and sasl", "x509 super")
# Lists, and the kinds of clients that pass each.
LISTS = {
    ("x509", SUBJECT): {"x509"}, ("x509", "O=oxkeeper, CN=client"): set(), ("x509", "CN=client,O=oxkeeper"): set(), ("x509", "cn=client"): set(), ("sasl", USER): {"sasl", "x509 and sasl"},
    ("sasl", "other"): set(), ("digest", "bob:hcPi43ExBsKlMvxqVJoUsYQuXwE="): set(), ("world", "anyone"): {"anonymous", "x509", "sasl", "x509 and sasl"},
    ("ip", "127.0.0.1"): {"anonymous", "x509", "sasl", "x509 and sasl"},
}
LISTS["x509", SUBJECT].add("x509 and sasl")


def client(member, kind):
    made = Ear.__new__(Ear)
    secure = "x509" in kind
    made.socket = socket.create_connection((member.host, member.secure_port if secure else member.port), timeout=20)
    if secure:
        made.socket = context_of("ec-client" if "super" in kind else "client").wrap_socket(made.socket, server_hostname=member.host)
    made.id, made.password, made.heard = 0, bytes(16), []
    assert made.hello(), f"{kind} at {member}"
    if "sasl" in kind:
        tokens = []
        for token in (b"", None):
            token = token if token is not None else respond(tokens[0], USER, SASL_PASSWORD)
            made.ask(-102, SASL, buffer(token), lambda body: tokens.append(body[4:]))
            assert made.heard[-1][2] == 0, made.heard
    made.ask(-4, SYNC, path("/"))
    return made


def error(made, *words):
    return made.ask(*words).heard[-1][2]


def matrix(ensemble):
    """Each client writes, reads and creates under each list through each member; the outcome must be the same everywhere."""
    wrong, count, number = [], 0, 0
    for member in ensemble.members:
        for kind in KINDS:
            one, subject = client(member, kind), SUPER if "super" in kind else SUBJECT
            names = dict(one.ask(1, WHO_AM_I, shown=identities).heard[-1][3])
            if names.get("x509") != (subject if "x509" in kind else None) or names.get("sasl") != (USER if "sasl" in kind else None):
                wrong.append(f"{kind} at {member} is {names}")
            for (scheme, name), passes in LISTS.items():
                number += 1
                node = f"/list-{number}"
                made = error(one, 2, CREATE, create(node, b"x", acl((31, scheme, name))))
                any_version = struct.pack(">i", -1)
                one.ask(3, SYNC, path(node))
                outcomes = [error(one, 4, SET, path(node) + buffer(b"y") + any_version), error(one, 5, GET, path(node) + b"\0"),
                            error(one, 6, CREATE, create(f"{node}/c"))]
                expected = [0, 0, 0] if kind in passes or "super" in kind else [-102, -102, -102]
                count += 1
                if [made, *outcomes] != [0, *expected]:
                    wrong.append(f"{kind} at {member}, {scheme}:{name}: {[made, *outcomes]}, expected {[0, *expected]}")
            # `auth` stands for the client's own identities, which the leader gets with the request.
            node = f"/auth-{member.number}-{kind.replace(' ', '-')}"
            made = error(one, 7, CREATE, create(node, b"", acl((31, "auth", ""))))
            if made != (-114 if kind == "anonymous" else 0):
                wrong.append(f"{kind} at {member}, auth: {made}")
            if made == 0:
                one.ask(8, SYNC, path(node))
                listed = one.ask(9, GET_ACL, path(node), lambda body: body).heard[-1][3]
                for scheme, name in (("x509", subject), ("sasl", USER)):
                    if (path(scheme) + path(name) in listed) != (scheme in kind):
                        wrong.append(f"{kind} at {member}, auth: {listed}")
            one.socket.close()
    if wrong:
        raise Failed("\n".join(wrong))
    return f"{count} pairs of client and list, through {ensemble.members} led by {ensemble.leader()}"
