"""Clients with certificates, also with odd subjects and as superuser, alone and with SASL: each against lists of every way to write a subject."""

import pathlib
import ssl
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tls"))
import odd_names  # noqa: E402
from acl_matrix import matrix  # noqa: E402
from ear import Ear, WHO_AM_I, ear, identities  # noqa: E402
from factory import PASSWORD  # noqa: E402
from factory import folder as usual  # noqa: E402

NETTY = "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"  # Java's other one has no TLS.
SUPER = "CN=sup\\\\,er,O=b"  # As zoo.cfg has it, in which a backslash stands for what follows it.


def settings(port):
    """Lines of a zoo.cfg. Clients need no certificate."""
    return [NETTY, f"secureClientPort={port}", "secureClientPortAddress=127.0.0.1", "ssl.clientAuth=want",
            f"ssl.keyStore.location={usual() / 'rsa.jks'}", f"ssl.keyStore.password={PASSWORD}", f"ssl.trustStore.location={odd_names.folder() / 'ca.pem'}"]


def client(server, name):
    """A client that shows the certificate of this name, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if name:
        file = odd_names.folder() / odd_names.file_of(name)
        context.load_cert_chain(f"{file}.pem", f"{file}.key")
    made = Ear(server, context.wrap_socket)
    assert made.hello(), f"no session for {name}"
    return made


def written(subject):
    """Ways to write a subject: as identity, and those that are no identity although they mean the same."""
    parts = subject.split(",")
    return [subject, subject.replace(",", ", "), subject.lower(), ",".join(reversed(parts)), subject.replace("CN=", "2.5.4.3="), subject.replace("\\", ""),
            subject.replace(",", ";"), "+".join(reversed(subject.split("+"))), f'CN="{subject}"', f" {subject}"]


# rows: U-03 U-04 U-08 P-24 C-214
def talk(login):
    """`login`: authenticates a client as bob by SASL."""

    def played(server):
        subjects, heard = {}, []
        for name in odd_names.SUBJECTS:
            heard += client(server, name).ask(1, WHO_AM_I, shown=identities).heard
            subjects[name] = next((id for scheme, id in heard[-1][3] if scheme == "x509"), "")
        ways = {kind: written(subject) for kind, subject in subjects.items()}
        lists = [("x509", way) for way in dict.fromkeys(way for its in ways.values() for way in its)]
        lists += [("auth", ""), ("sasl", "bob"), ("world", "anyone"), ("x509", ""), ("super", subjects["super"])]
        kinds = {"plain": lambda: ear(server), "none": lambda: client(server, None), **{name: lambda name=name: client(server, name) for name in subjects},
                 "certificate and SASL": lambda: login(client(server, "several values")), "SASL": lambda: login(client(server, None))}

        def asks(kind, scheme, name):
            shown = "several values" if kind == "certificate and SASL" else kind
            return scheme != "x509" or name in ways.get(shown, ways["usual"])

        return [*heard, *matrix(client(server, "super"), kinds, lists, asks)]

    return played
