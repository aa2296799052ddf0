"""A Kerberos realm of its own for the tests: a KDC of MIT Kerberos in a scratch folder, on a port of its own, without root."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

from server import free_port

PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/lib/mit/sbin"])
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
CONF = """
[libdefaults]
 default_realm = {default}
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 clockskew = 3
[realms]
{realms}
[domain_realm]
 localhost = {default}
"""
KDC = """
[kdcdefaults]
 kdc_listen = {listens}:{port}
 kdc_tcp_listen = {listens}:{port}
[realms]
 {name} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  max_life = 1h
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }}
[logging]
 kdc = FILE:{folder}/kdc.log
"""
# A member's own sections, and what its zoo.cfg says besides `quorum.auth.enableSasl` and so on.
MEMBER = """{name} {{ com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true keyTab="{keytab}" storeKey=true useTicketCache=false principal="{principal}"; }};
"""
SERVICE_OF_MEMBERS = "quorum.auth.kerberos.servicePrincipal=zkquorum/_HOST"


def missing():
    """The programs that Debian's krb5-kdc, krb5-admin-server and krb5-user would bring."""
    return [name for name in PROGRAMS if not shutil.which(name, path=PATH)]


class Realm:
    """A realm, its KDC, and keytabs by the name of a principal. `host`: the KDC's address, by which its clients know it."""

    def __init__(self, folder, name, host="127.0.0.1"):
        self.name, self.folder, self.host, self.port, self.process = name, pathlib.Path(folder) / name, host, free_port(), None
        self.folder.mkdir()
        listens = host if host == "127.0.0.1" else "0.0.0.0"  # Another address may be given to this machine later.
        (self.folder / "kdc.conf").write_text(KDC.format(port=self.port, name=name, folder=self.folder, listens=listens))
        self.conf = self.folder / "krb5.conf"
        self.write_conf([self])
        self.run("kdb5_util", "create", "-s", "-r", name, "-P", "master")

    def write_conf(self, realms):
        lines = "\n".join(f" {realm.name} = {{\n  kdc = {realm.host}:{realm.port}\n }}" for realm in realms)
        self.conf.write_text(CONF.format(default=self.name, realms=lines))

    def environment(self):
        return {**os.environ, "PATH": PATH, "KRB5_CONFIG": str(self.conf), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def run(self, *words, text=None):
        done = subprocess.run([str(word) for word in words], env=self.environment(), input=text, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self):
        program = shutil.which("krb5kdc", path=PATH)
        with (self.folder / "kdc.out").open("a") as log:
            self.process = subprocess.Popen([program, "-n", "-r", self.name], env=self.environment(), stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                if self.process.poll() is not None or deadline < time.monotonic():
                    raise RuntimeError(f"the KDC does not start: {(self.folder / 'kdc.out').read_text()}") from None
                time.sleep(0.05)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def keytab(self, principal):
        return self.folder / (principal.replace("/", "-") + ".keytab")

    def add(self, *principals, life="1h"):
        """Adds principals, and writes their keys to a keytab, which is returned. `life`: of their tickets, and of those for them."""
        keytab = self.keytab(principals[0])
        lines = [f'addprinc -randkey -maxlife "{life}" {one}\nktadd -k {keytab} {one}' for one in principals]
        self.run("kadmin.local", "-r", self.name, text="\n".join(lines) + "\n")
        return keytab

    def member_jaas(self, principal):
        """The sections of a member, as which it accepts and dials; the realm gets the principal if it has not got it."""
        if not self.keytab(principal).exists():
            self.add(principal)
        return "".join(MEMBER.format(name=name, keytab=self.keytab(principal), principal=f"{principal}@{self.name}")
                       for name in ("QuorumServer", "QuorumLearner"))

    def rotate(self, principal, keytab):
        """New keys for a principal; the keytab has them alone."""
        keytab.unlink()
        self.run("kadmin.local", "-r", self.name, text=f"ktadd -k {keytab} {principal}\n")

    def tickets(self, principal, keytab, life="1h"):
        """A ticket cache of a principal."""
        cache = self.folder / (principal.replace("/", "-") + f"-{life}.cc")
        self.run("kinit", "-k", "-t", keytab, "-c", f"FILE:{cache}", "-l", life, principal)
        return cache
