"""The .deb in a Debian of its own, which systemd-nspawn boots: installed, upgraded, served from, removed, purged."""

import pathlib
import re
import shutil
import subprocess

import cache
from archives import call, release, wait_for

CONFIG = "tickTime=2000\ndataDir=/var/lib/oxkeeper\nclientPort=2181\n4lw.commands.whitelist=*\nsnapCount=5000\n" \
    "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"
PACKAGES = "dbus,libgcc-s1,netcat-openbsd,passwd,systemd-sysv"


def debian(folder):
    """A minimal Debian with systemd; fetched once."""
    fetch = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}", "bookworm"]
    base = cache.filled(cache.named(cache.DOWNLOADS, "systemd-base", fetch), lambda made: call(*fetch, made / "base.tar"))
    root = folder / "debian"
    root.mkdir()
    call("tar", "-C", root, "-xpf", base / "base.tar")
    (root / "etc/machine-id").write_text("")
    return root


def older(package, folder):
    """The same package with a lower version, to be upgraded from."""
    call("dpkg-deb", "-R", package, folder / "older")
    control = folder / "older/DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", "Version: 0.0.1", control.read_text()))
    call("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", folder / "older", folder / "older.deb")
    return folder / "older.deb"


class Booted:
    """The Debian with systemd as its first process, in namespaces of its own."""

    def __init__(self, root, folder):
        self.log = (folder / "boot.log").open("w")
        self.nspawn = subprocess.Popen(["systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--console=pipe", "--boot", "-D", root],
                                       stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.first = wait_for(self.find_first)

    def find_first(self):
        """The descendant of nspawn that is process 1 of another namespace."""
        ours = str(self.nspawn.pid)
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            except OSError:
                continue
            if fields["NSpid"].split()[1:] == ["1"] and fields["PPid"] == ours:
                return int(fields["Pid"])
        return None

    def run(self, *words, **options):
        enter = ["nsenter", f"--target={self.first}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd=/"]
        return call(*enter, *words, **options)

    def end(self):
        self.nspawn.terminate()
        try:
            self.nspawn.wait(30)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()
        self.log.close()


def installed(root, package, older_package):
    """As an administrator who changed a conffile sees an upgrade; nothing is asked, enabled or started."""
    quiet = {"stdin": subprocess.DEVNULL, "env": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "readline"}}
    for path in (older_package, package):
        shutil.copy(path, root / "root" / path.name)
    call("chroot", root, "dpkg", "-i", f"/root/{older_package.name}", **quiet)
    assert "Version: 0.0.1" in call("chroot", root, "dpkg", "-s", "oxkeeper", **quiet)
    for name in ("var/lib/oxkeeper", "var/log/oxkeeper"):
        found = (root / name).stat()
        user = call("chroot", root, "stat", "-c", "%U:%G %a", f"/{name}", **quiet).strip()
        assert user == "oxkeeper:oxkeeper 750", f"{name}: {user} {found}"
    (root / "etc/oxkeeper/zoo.cfg").write_text(CONFIG)
    call("chroot", root, "dpkg", "-i", f"/root/{package.name}", **quiet)
    assert (root / "etc/oxkeeper/zoo.cfg").read_text() == CONFIG, "the upgrade replaced zoo.cfg"
    state = call("systemctl", f"--root={root}", "is-enabled", "oxkeeper", check=False).strip()
    assert state == "disabled", state
    said = call("chroot", root, "runuser", "-u", "oxkeeper", "--", "oxkeeper", "config", "check", "/etc/oxkeeper/zoo.cfg", **quiet)
    assert "no problems" in said or "problem" not in said.lower(), said
    return quiet


def served(root, folder):
    """The unit, under its own filters, each of which ends the process here in place of an error that may go unseen, serves a load."""
    strict = root / "etc/systemd/system/oxkeeper.service.d/strict.conf"
    strict.parent.mkdir(parents=True, exist_ok=True)
    strict.write_text("[Service]\nSystemCallErrorNumber=kill\n")
    call("systemctl", f"--root={root}", "enable", "oxkeeper")
    booted = Booted(root, folder)
    try:
        def is_active():
            state = booted.run("systemctl", "is-active", "oxkeeper", check=False).strip()
            assert state != "failed", booted.run("journalctl", "-u", "oxkeeper", "--no-pager", check=False)
            return state == "active"
        wait_for(is_active, 90)
        assert "Mode: standalone" in booted.run("sh", "-c", "echo srvr | nc -w 2 127.0.0.1 2181"), "active, and it does not serve"
        pid = booted.run("systemctl", "show", "-P", "MainPID", "oxkeeper").strip()
        status = booted.run("cat", f"/proc/{pid}/status")
        for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"):
            assert line in status, status
        load = booted.run("oxkeeper", "bench", "--duration", "5s", "--warm-up", "1s", "--connections", "8", "--mix", "get=50,set=30,create=10,delete=10", timeout=120)
        for word in ("mntr", "cons", "dump", "envi", "conf"):
            assert booted.run("sh", "-c", f"echo {word} | nc -w 2 127.0.0.1 2181"), word
        for port, path in ((8080, "/commands/monitor"), (7000, "/metrics")):
            asked = f"printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' | nc -w 2 127.0.0.1 {port}"
            assert "200 OK" in booted.run("sh", "-c", asked), path
        assert booted.run("systemctl", "show", "-P", "MainPID", "oxkeeper").strip() == pid, "it was started again"
        (root / "etc/oxkeeper/zoo.cfg").write_text(CONFIG + "tickTime=none\n")
        booted.run("systemctl", "restart", "oxkeeper", check=False)
        shown = booted.run("systemctl", "show", "oxkeeper", "-P", "NRestarts", "-P", "Result", "-P", "ExecMainStatus").split()
        assert shown[-1] == "2" or "2" in shown, shown
        (root / "etc/oxkeeper/zoo.cfg").write_text(CONFIG)
        booted.run("systemctl", "restart", "oxkeeper")
        booted.run("sh", "-c", "kill -9 $(systemctl show -P MainPID oxkeeper)")
        wait_for(lambda: booted.run("systemctl", "show", "-P", "NRestarts", "oxkeeper").strip() == "1")
        wait_for(is_active)
        booted.run("systemctl", "stop", "oxkeeper")
        assert booted.run("systemctl", "show", "-P", "Result", "oxkeeper").strip() == "success"
        journal = booted.run("journalctl", "-u", "oxkeeper", "--no-pager", "-o", "cat")
        assert "stopped: everything acknowledged is on disk" in journal, journal
        return next((line.strip() for line in load.splitlines() if "/s" in line), "a load")
    finally:
        booted.end()


def removed(root, quiet):
    """A removal keeps configuration and data, a purge the data and its user."""
    call("chroot", root, "dpkg", "-r", "oxkeeper", **quiet)
    assert not (root / "usr/bin/oxkeeper").exists() and (root / "etc/oxkeeper/zoo.cfg").exists()
    said = call("chroot", root, "dpkg", "-P", "oxkeeper", **quiet)
    assert "the data stays in /var/lib/oxkeeper" in said, said
    assert not (root / "etc/oxkeeper").exists() and list((root / "var/lib/oxkeeper/version-2").glob("log.*"))
    assert "oxkeeper" in call("chroot", root, "stat", "-c", "%U", "/var/lib/oxkeeper/version-2", **quiet)
    left = [path for path in (root / "usr").rglob("*oxkeeper*")]
    assert not left, f"a purge leaves {left}"


def package(folder, server):
    path = next(release(folder / "one", server).glob("*.deb"))
    said = call("lintian", "--allow-root", "--fail-on", "error", path)
    assert not re.search("(?m)^E:", said), said
    root = debian(folder)
    try:
        quiet = installed(root, path, older(path, folder))
        load = served(root, folder)
        removed(root, quiet)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return f"installed, upgraded, served ({load}), removed, purged; lintian without errors"
