"""Calls of the scripts of `bin`, ours or ZooKeeper's own, on a server of their own; what each says, on which stream, and its exit code."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from server import free_port

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = HERE.parent.parent / "conf/bin"


class Place:
    """A folder laid out as ZooKeeper's tarball, with one configuration."""

    def __init__(self, folder, scripts, server=None, lib=None, java_home=None):
        self.folder, self.port = folder, free_port()
        (folder / "conf").mkdir(parents=True)
        shutil.copytree(scripts, folder / "bin")
        self.environment = {"PATH": "/usr/bin:/bin", "USER": "operator", "HOSTNAME": "host", "TZ": "UTC", "LC_ALL": "C.UTF-8",
                            "ZOO_LOG_DIR": str(folder / "logs"), "JVMFLAGS": "-Dzookeeper.admin.enableServer=false"}
        if server:
            (folder / "libexec/bin").mkdir(parents=True)
            shutil.copy(server, folder / "libexec/oxkeeper")
            (folder / "libexec/bin/java").symlink_to("../oxkeeper")
            self.environment["JAVA_HOME"] = str(folder / "libexec")
        else:
            (folder / "lib").symlink_to(lib)
            self.environment["JAVA_HOME"] = java_home
        self.configure("zoo.cfg", f"clientPort={self.port}")

    def configure(self, name, *lines):
        all_lines = ["tickTime=2000", f"dataDir={self.folder}/data", "clientPortAddress=127.0.0.1", *lines]
        (self.folder / "conf" / name).write_text("\n".join(all_lines) + "\n")

    def call(self, script, *arguments, **more):
        ended = subprocess.run([f"{self.folder}/bin/{script}", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60,
                               stdin=subprocess.DEVNULL, env={**self.environment, **more})
        lines = [f"exit {ended.returncode}"]
        for stream, text in (("out", ended.stdout), ("err", ended.stderr)):
            lines += [f"{stream}: {line}" for line in self.masked(text).splitlines() if self.counts(stream, line)]
        return lines

    @staticmethod
    def counts(stream, line):
        """JMX is the JVM's, Java's own log goes where its class path says, and Java says nothing if there is nothing to purge."""
        ignored = r"SLF4J|\[main\]|^WARNING|^nohup|^nothing to remove: "
        return "JMX" not in line and not (stream == "err" and re.search(ignored, line))

    def status_when_up(self, *arguments):
        for _ in range(100):
            status = self.call("zkServer.sh", "status", *arguments)
            if status[0] == "exit 0":
                break
        return status

    def member(self):
        """A configuration whose client port is in the dynamic file alone; its name. The server leads an ensemble of its own."""
        (self.folder / "member").mkdir()
        (self.folder / "member/myid").write_text("2\n")
        (self.folder / "conf/running").write_text(f"server.2=127.0.0.1:{free_port()}:{free_port()}:participant;127.0.0.1:{self.port}\n")
        lines = ["tickTime=2000", "initLimit=10", "syncLimit=5", "standaloneEnabled=false", f"dataDir={self.folder}/member",
                 f"dynamicConfigFile={self.folder}/conf/running"]
        (self.folder / "conf/running.cfg").write_text("\n".join(lines) + "\n")
        return "running.cfg"

    def in_foreground(self, config):
        """The status while the server runs, and whether it is the process of the script."""
        command = [f"{self.folder}/bin/zkServer.sh", "start-foreground", config]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, cwd=self.folder, env=self.environment, **quiet) as server:
            status = self.status_when_up(config)
            words = pathlib.Path(f"/proc/{server.pid}/cmdline").read_bytes().split(b"\0")
            server.terminate()
        return [*status, f"process: {pathlib.Path(os.fsdecode(words[0])).name} ... {self.masked(words[-2].decode())}"]

    def command_line(self):
        """What print-cmd prints, without what is the JVM's: class path, heap, JMX."""
        lines = self.call("zkServer.sh", "print-cmd")
        java = f"{self.environment['JAVA_HOME']}/bin/java".replace(str(self.folder), "PLACE")
        ours = [re.sub(r'-cp "[^"]*"', '-cp "CLASSPATH"', line.replace(java, "JAVA")) for line in lines]
        return [re.sub(r"\s+", " ", re.sub(r"-Xmx\S+|-Dcom\.sun\.management\S+", "", line)) for line in ours]

    def masked(self, text):
        text = text.replace(str(self.folder), "PLACE").replace("PLACE/bin/..", "PLACE").replace(str(self.port), "PORT")
        text = re.sub(r"process \d+", "process PID", text)
        return re.sub(r"version \S+ .*UTC", "version V DATE UTC", text)


# rows: T-01 T-02 T-09 C-267 C-268 D-12
def calls(place, without=()):
    """Every call by name, in order. `without`: those of scripts that are not there."""
    yield "usage", place.call("zkServer.sh")
    yield "status-before", place.call("zkServer.sh", "status")
    yield "stop-before", place.call("zkServer.sh", "stop")
    yield "start", place.call("zkServer.sh", "start")
    yield "pid-file", [f"exists: {(place.folder / 'data/zookeeper_server.pid').exists()}"]
    yield "status", place.status_when_up()
    yield "status-by-path", place.call("zkServer.sh", "status", f"{place.folder}/conf/zoo.cfg")
    yield "status-by-folder", place.call("zkServer.sh", "--config", f"{place.folder}/conf", "status")
    yield "start-twice", place.call("zkServer.sh", "start")
    pid = (place.folder / "data/zookeeper_server.pid").read_text()
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    yield "config-in-arguments", [f"last: {place.masked(words[-2].decode())}"]
    yield "restart", place.call("zkServer.sh", "restart")
    yield "stop", place.call("zkServer.sh", "stop")
    yield "stop-again", place.call("zkServer.sh", "stop")
    yield "version", place.call("zkServer.sh", "version")
    yield "unknown", place.call("zkServer.sh", "what")
    place.configure("secure.cfg", f"secureClientPort={place.port}")
    yield "status-secure", place.call("zkServer.sh", "status", "secure.cfg")[:4]  # The advice after it is ours.
    place.configure("none.cfg")
    yield "status-no-port", place.call("zkServer.sh", "status", "none.cfg")
    yield "status-by-environment", place.call("zkServer.sh", "status", ZOOCFGDIR=f"{place.folder}/conf", ZOOCFG="none.cfg")
    yield "pid-file-by-environment", place.call("zkServer.sh", "stop", ZOOPIDFILE=f"{place.folder}/run/pid")
    (place.folder / "conf/java.env").write_text(f"ZOOPIDFILE={place.folder}/run/java.env.pid\n")
    (place.folder / "conf/zookeeper-env.sh").write_text("ZOOCFG=none.cfg\n")
    yield "environment-files", place.call("zkServer.sh", "stop")
    (place.folder / "conf/java.env").unlink()
    (place.folder / "conf/zookeeper-env.sh").unlink()
    (place.folder / "data/myid").write_text("2\n")
    place.configure("member.cfg", "server.2=127.0.0.1:1:2;127.0.0.1:" + str(place.port))
    yield "status-member", place.call("zkServer.sh", "status", "member.cfg")
    (place.folder / "conf/dynamic").write_text(f"server.2=127.0.0.1:1:2:participant;{place.port}\n")
    place.configure("dynamic.cfg", f"dynamicConfigFile={place.folder}/conf/dynamic")
    yield "status-dynamic", place.call("zkServer.sh", "status", "dynamic.cfg")
    yield "initialize-there", place.call("zkServer-initialize.sh")
    yield "initialize-force", place.call("zkServer-initialize.sh", "--force", "--myid=7")
    yield "initialize-made", [f"{path}: {(place.folder / 'data' / path).exists()}" for path in ("initialize", "version-2", "myid")]
    yield "initialize-file", place.call("zkServer-initialize.sh", f"--configfile={place.folder}/none")
    yield "initialize-unknown", place.call("zkServer-initialize.sh", "--what")[:3]
    yield "initialize-help", place.call("zkServer-initialize.sh", "-h")
    shutil.rmtree(place.folder / "data/version-2")
    yield "no-autocreate", place.call("zkServer.sh", "start", ZOO_DATADIR_AUTOCREATE_DISABLE="1")
    shutil.copytree(HERE.parent / "golden/java-data/version-2", place.folder / "data/version-2")
    yield "cleanup-few", place.call("zkCleanup.sh", "-n", "2")
    yield "cleanup", place.call("zkCleanup.sh", "-n", "3")
    data = f"{place.folder}/data/version-2"
    yield "log", place.call("zkTxnLogToolkit.sh", f"{data}/log.1")[:3]
    yield "snapshot", place.call("zkSnapShotToolkit.sh", f"{data}/snapshot.c")[:3]
    yield "compare", place.call("zkSnapshotComparer.sh", "-l", f"{data}/snapshot.c")[:3]
    if "summary" not in without:
        yield "summary", place.call("zkSnapshotRecursiveSummaryToolkit.sh", f"{data}/snapshot.c", "/", "0")
    yield "print-cmd", place.command_line()
    member = place.member()
    yield "start-member", place.call("zkServer.sh", "start", member)
    yield "status-of-running-member", place.status_when_up(member)
    yield "stop-member", place.call("zkServer.sh", "stop", member)
    yield "start-foreground", place.in_foreground(member)


def differences(found, expected):
    """The names of calls that differ, with both texts."""
    for name, lines in found.items():
        if lines != expected.get(name):
            yield name, expected.get(name, []), lines


if __name__ == "__main__":
    sys.exit("run compat-tests/tools/run")
