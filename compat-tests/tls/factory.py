"""Certificates and key stores for the tests of TLS: made with openssl and keytool, once for each version of this file.

    factory.py          prints the folder

Authorities: `ca` (RSA) and `ec-ca`, `inter` below `ca`, `other` that no server trusts, `roll-old` and `roll-new` with one subject. Leaves are named by what is special about them; a leaf NAME
is NAME.key (PKCS#8), NAME.pem (certificate and chain without the root), and in stores as a server needs them NAME.jks, NAME.p12 and so on.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import cache  # noqa: E402

PASSWORD = "pass-word"
PAST, NOW, FUTURE = ("20200101000000Z", "20210101000000Z"), ("20250101000000Z", "20990101000000Z"), ("20900101000000Z", "20990101000000Z")
HERE, ELSEWHERE = "IP:127.0.0.1,DNS:localhost", "DNS:elsewhere.example"
CONFIG = """
[ca]
default_ca = any
[any]
database = index.txt
new_certs_dir = .
policy = policy
default_md = sha256
rand_serial = yes
unique_subject = no
copy_extensions = none
[policy]
commonName = supplied
organizationName = optional
[req]
distinguished_name = name
[name]
"""


def run(*words, within):
    done = subprocess.run([str(word) for word in words], cwd=within, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(str(word) for word in words)}\n{done.stderr}")


class Factory:
    def __init__(self, folder):
        self.folder, self.above = folder, {}
        (folder / "index.txt").write_text("")
        (folder / "openssl.cnf").write_text(CONFIG)

    def openssl(self, *words):
        run("openssl", *words, within=self.folder)

    def key(self, name, kind="rsa:2048"):
        algorithm, _, size = kind.partition(":")
        options = ["-algorithm", "RSA", "-pkeyopt", f"rsa_keygen_bits:{size}"] if algorithm == "rsa" else \
            ["-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{size}"]
        self.openssl("genpkey", *options, "-out", f"{name}.key")

    def authority(self, name, kind="rsa:2048", by=None, subject=None):
        usage = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
        self.leaf(name, by or name, kind, names=None, extra=usage, subject=subject)

    def leaf(self, name, by, kind="rsa:2048", names=HERE, dates=NOW, usage=None, digest="sha256", extra=(), key=None, subject=None):
        """A certificate for a new key. `by`: its authority; itself: self-signed."""
        if key is None:
            self.key(name, kind)
        else:
            (self.folder / f"{name}.key").write_bytes((self.folder / f"{key}.key").read_bytes())
        extensions = [f"subjectAltName={names}"] if names else []
        extensions += [f"extendedKeyUsage={usage}"] if usage else []
        (self.folder / f"{name}.ext").write_text("\n".join([*extensions, *extra]) + "\n")
        self.openssl("req", "-new", "-config", "openssl.cnf", "-key", f"{name}.key", "-subj", f"/O=oxkeeper/CN={subject or name}", "-out", f"{name}.csr")
        signer = ["-selfsign", "-keyfile", f"{name}.key"] if by == name else ["-cert", f"{by}.crt", "-keyfile", f"{by}.key"]
        self.openssl("ca", "-batch", "-notext", "-config", "openssl.cnf", *signer, "-md", digest, "-startdate", dates[0], "-enddate", dates[1],
                     "-extfile", f"{name}.ext", "-in", f"{name}.csr", "-out", f"{name}.crt")
        self.chain(name, by)

    def old(self, name, by):
        """A certificate of version 1, as `openssl x509 -req` makes it unasked."""
        self.key(name)
        self.openssl("req", "-new", "-config", "openssl.cnf", "-key", f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial", "-days", "9000",
                     "-out", f"{name}.crt")
        self.chain(name, by)

    def chain(self, name, by):
        """The certificate and those of its authorities, without the root, which the other end has."""
        self.above[name] = None if by == name else by
        chain = [name]
        while self.above[chain[-1]]:
            chain.append(self.above[chain[-1]])
        texts = [(self.folder / f"{each}.crt").read_text() for each in chain[:-1] or chain]
        (self.folder / f"{name}.pem").write_text("".join(texts))

    def p12(self, name, kind, *options):
        self.openssl("pkcs12", "-export", "-inkey", f"{name}.key", "-in", f"{name}.pem", "-name", "key", "-passout", f"pass:{PASSWORD}",
                     *options, "-out", f"{name}.{kind}")

    def stores(self, name):
        """Every kind of key store with this leaf."""
        pass_in, pass_out = ("-srcstorepass", PASSWORD), ("-deststorepass", PASSWORD)
        self.p12(name, "openssl.p12")
        self.p12(name, "legacy.p12", "-legacy")
        for kind, suffix in (("JKS", "jks"), ("PKCS12", "p12")):
            run("keytool", "-importkeystore", "-noprompt", "-srckeystore", f"{name}.openssl.p12", "-srcstoretype", "PKCS12", *pass_in,
                "-destkeystore", f"{name}.{suffix}", "-deststoretype", kind, *pass_out, within=self.folder)
        chain = (self.folder / f"{name}.pem").read_text()
        encrypted = ["pkcs8", "-topk8", "-in", f"{name}.key", "-passout", f"pass:{PASSWORD}"]
        self.openssl(*encrypted, "-v2", "aes-256-cbc", "-out", "pbes2.key")
        self.openssl(*encrypted, "-v1", "PBE-SHA1-3DES", "-out", "pbes1.key")
        for kind, key in (("plain", f"{name}.key"), ("pbes1", "pbes1.key"), ("pbes2", "pbes2.key")):
            (self.folder / f"{name}.{kind}.pem").write_text(chain + (self.folder / key).read_text())

    def trust(self, name, *roots):
        """Trust stores, as PEM and as JKS."""
        texts = [(self.folder / f"{root}.crt").read_text() for root in roots]
        (self.folder / f"{name}.pem").write_text("".join(texts))
        for root in roots:
            run("keytool", "-importcert", "-noprompt", "-alias", root, "-file", f"{root}.crt", "-keystore", f"{name}.jks", "-storetype", "JKS",
                "-storepass", PASSWORD, within=self.folder)


def make(folder):
    made = Factory(folder)
    for name, kind in (("ca", "rsa:2048"), ("ec-ca", "ec:prime256v1"), ("other", "rsa:2048")):
        made.authority(name, kind)
    made.authority("inter", by="ca")
    made.leaf("rsa", "ca")
    made.leaf("ec", "ec-ca", "ec:prime256v1")
    made.leaf("below", "inter")
    made.leaf("pinned", "pinned")
    made.leaf("pinned-expired", "pinned-expired", dates=PAST)
    made.old("v1", "ca")
    for name in ("rsa", "ec", "below", "pinned", "v1"):
        made.stores(name)
    made.leaf("client", "ca")
    made.leaf("ec-client", "ec-ca", "ec:prime256v1")
    made.leaf("stranger", "other")
    made.leaf("expired", "ca", dates=PAST)
    made.leaf("future", "ca", dates=FUTURE)
    made.leaf("elsewhere", "ca", names=ELSEWHERE)
    made.leaf("by-name", "ca", names="DNS:localhost")
    made.leaf("by-other-address", "ca", names="IP:127.0.0.2")
    for name in ("stranger", "expired", "elsewhere"):
        made.p12(name, "p12")
    made.leaf("server-only", "ca", usage="serverAuth")
    made.leaf("client-only", "ca", usage="clientAuth")
    made.leaf("authority", "ca", extra=["basicConstraints=critical,CA:TRUE"])
    made.leaf("rsa1024", "ca", "rsa:1024")
    made.leaf("sha1", "ca", digest="sha1")
    made.leaf("critical", "ca", extra=["1.2.3.4=critical,DER:0500"])
    made.leaf("of-leaf", "client")
    # Chains of 7 to 11 and one of 100 certificates.
    made.authority("deep-1", by="ca", kind="ec:prime256v1")
    for at in range(2, 100):
        made.leaf(f"deep-{at}", f"deep-{at - 1}", names=None, key="deep-1", extra=["basicConstraints=critical,CA:TRUE"])
    for count in (8, 9, 10, 11):
        made.leaf(f"chain{count}", f"deep-{count - 1}", "ec:prime256v1")
    made.leaf("chain7", "deep-6", "ec:prime256v1")
    made.leaf("chain100", "deep-99", "ec:prime256v1")
    for age in ("old", "new"):
        made.authority(f"roll-{age}", subject="roll")
        made.leaf(f"of-{age}", f"roll-{age}")
    made.trust("roll", "roll-old", "roll-new")
    made.trust("narrow", "ec-ca")
    made.trust("trust", "ca", "ec-ca", "pinned", "pinned-expired")
    for leftover in folder.glob("*.csr"):
        leftover.unlink()


def folder():
    return cache.filled(cache.named(cache.DOWNLOADS, "certificates", [pathlib.Path(__file__).resolve()]), make)


if __name__ == "__main__":
    print(folder())
