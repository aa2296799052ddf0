"""What zoo.cfg, JAAS file and flags of a member say at each stage of a rolling upgrade."""

import pathlib
import sys

sys.path += [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in ("tls", "kerberos")]
from factory import PASSWORD, folder  # noqa: E402
from kdc import SERVICE_OF_MEMBERS  # noqa: E402

USER, SASL_PASSWORD = "zk", "password of the servers"
JAAS = """
QuorumServer {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_{user}="{password}";
}};
QuorumLearner {{
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="{shown_user}"
    password="{shown_password}";
}};
"""
FLAGS = ["java.security.auth.login.config=jaas.conf"]
NETTY = "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"  # Java's other one has no TLS.

ENABLED = ["quorum.auth.enableSasl=true", "fips-mode=false"]  # With fips-mode no member dials with DIGEST-MD5.
DIALS = [*ENABLED, "quorum.auth.learnerRequireSasl=true"]
REQUIRED = [*DIALS, "quorum.auth.serverRequireSasl=true"]
# The same with Kerberos, which fips-mode allows.
KERBEROS_ENABLED, KERBEROS_DIALS, KERBEROS_REQUIRED = ([SERVICE_OF_MEMBERS, *(line for line in lines if not line.startswith("fips-mode"))]
                                                       for lines in (ENABLED, DIALS, REQUIRED))


def stores_of(kind):
    """The stores of a kind of server: Java has JKS, ours PEM."""
    made = folder()
    if kind == "o":
        return [f"ssl.quorum.keyStore.location={made / 'rsa.plain.pem'}", f"ssl.quorum.trustStore.location={made / 'trust.pem'}"]
    return [f"ssl.quorum.keyStore.location={made / 'rsa.jks'}", f"ssl.quorum.keyStore.password={PASSWORD}",
            f"ssl.quorum.trustStore.location={made / 'trust.jks'}", f"ssl.quorum.trustStore.password={PASSWORD}"]


def quorum_stores(member):
    return stores_of(member.kind)


def client_stores(member):
    return [line.replace("ssl.quorum.", "ssl.") for line in quorum_stores(member)]


def unified(member):
    return [*quorum_stores(member), "portUnification=true"]


def unified_tls(member):
    return [*quorum_stores(member), "portUnification=true", "sslQuorum=true"]


def tls(member):
    return [*quorum_stores(member), "sslQuorum=true"]


def tls_with_secure_port(member):
    return [*tls(member), *client_stores(member), f"secureClientPort={member.secure_port}", f"secureClientPortAddress={member.host}", NETTY]


def tls_with_passwords(member):
    stores = stores_of("j")
    return [*stores, *(line.replace("ssl.quorum.", "ssl.") for line in stores), "sslQuorum=true", f"secureClientPort={member.secure_port}",
            f"secureClientPortAddress={member.host}"]


def together(tls_lines, sasl_lines):
    """TLS and SASL. `fips-mode=false`, which SASL needs, would compare names, and observers' addresses stand in no certificate."""
    return lambda member: [*tls_lines(member), *sasl_lines, "ssl.quorum.hostnameVerification=false"]


def always(lines):
    return lambda member: lines


PLAIN = ("plain", always([]))
SASL = [("enableSasl", always(ENABLED)), ("learnerRequireSasl", always(DIALS)), ("serverRequireSasl", always(REQUIRED))]
TLS = [("portUnification", unified), ("portUnification and sslQuorum", unified_tls), ("sslQuorum", tls)]
BOTH = [("portUnification and enableSasl", together(unified, ENABLED)),
        ("sslQuorum and learnerRequireSasl", together(unified_tls, DIALS)), ("sslQuorum and serverRequireSasl", together(tls, REQUIRED))]
KERBEROS = [("Kerberos, enableSasl", always(KERBEROS_ENABLED)), ("Kerberos, learnerRequireSasl", always(KERBEROS_DIALS)),
            ("Kerberos, serverRequireSasl", always(KERBEROS_REQUIRED))]
KERBEROS_AND_TLS = [("portUnification and Kerberos, enableSasl", together(unified, KERBEROS_ENABLED)),
                    ("sslQuorum and Kerberos, learnerRequireSasl", together(unified_tls, KERBEROS_DIALS)),
                    ("sslQuorum and Kerberos, serverRequireSasl", together(tls, KERBEROS_REQUIRED))]
SECURE_PORT = ("sslQuorum and secureClientPort", tls_with_secure_port)
# As `both` and a secure port, with stores that have passwords.
MARKED = ("sslQuorum, secureClientPort and serverRequireSasl", together(tls_with_passwords, REQUIRED))


def with_lines(stage, more):
    name, lines = stage
    return name, lambda member: [*lines(member), *more]


def write_jaas(member, shown_user=USER, shown_password=SASL_PASSWORD):
    text = JAAS.format(user=USER, password=SASL_PASSWORD, shown_user=shown_user, shown_password=shown_password)
    (member.folder / "jaas.conf").write_text(text)
