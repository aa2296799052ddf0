"""The real zkCli, run by a script which holds what it answers on Java's server: zkcli.txt."""

import difflib
import pathlib
import re
import subprocess

import server as tools
from workers import PATIENCE

HERE = pathlib.Path(__file__).parent


def normal(line, server):
    """A line of zkCli without what changes from run to run. Zxids stay: both servers must count alike."""
    line = line.replace(server.address, "SERVER")
    if line.startswith("[") and line.endswith("]"):
        # Java lists children and ephemerals in the order of its hash table, and promises none.
        line = f"[{', '.join(sorted(line[1:-1].split(', ')))}]"
    line = re.sub(r"(ctime|mtime) = (?!.* 1970).*", r"\1 = TIME", line)
    return re.sub(r"0x1\w{14}\b", "SESSION", line)


def split_events(text, server):
    """Output lines, and the watch events among them; blank lines belong to the events."""
    lines = [normal(line, server) for line in text.splitlines() if line.strip() and line != "WATCHER::"]
    events = [line for line in lines if line.startswith("WatchedEvent")]
    return [line for line in lines if not line.startswith("WatchedEvent")], events


class ZkCli:
    """One zkCli that stays. The end of a command's output is the complaint about a node that is never there."""

    def __init__(self, main, server):
        self.server, self.asked, self.events = server, 0, []
        self.process = subprocess.Popen(main, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        self.ask("sync /")  # Behind the greeting.

    def ask(self, command):
        self.asked += 1
        self.process.stdin.write(f"{command}\nls /end-{self.asked}\n")
        self.process.stdin.flush()
        text = []
        for line in self.process.stdout:
            if line == f"Node does not exist: /end-{self.asked}\n":
                lines, events = split_events("".join(text), self.server)
                self.events += events
                return lines
            text.append(line)
        raise AssertionError(f"zkCli ended at {command!r}: {text}")

    def quit(self):
        rest, _ = self.process.communicate("quit\n", PATIENCE)
        self.events += split_events(rest, self.server)[1]
        return self.process.returncode


def zkcli(server, rewrite):
    """Every command of zkCli that asks a standalone server something, with its answer as Java gives it."""
    script = HERE / "zkcli.txt"
    off = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    main = tools.java(off, "-cp", tools.jars(), "org.apache.zookeeper.ZooKeeperMain", "-server", server.address)
    lines = script.read_text().splitlines()
    out = [line for line in lines if line.startswith("#")]
    # One process first and alone: then its zxids are the same on every run, and on every server.
    shell = ZkCli(main, server)
    try:
        for line in lines:
            if line.startswith("> ") and line != "> quit":
                out += [line, *shell.ask(line[2:])]
        out += ["> quit", f"exit {shell.quit()}", "events", *shell.events]
    finally:
        shell.process.kill()
    for line in lines:
        if line.startswith("$ "):
            done = subprocess.run(main + line[2:].split(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            # These leave without closing their sessions, which end at any time later, each taking a zxid.
            answer = re.sub(r"(?m)^(.Zxid) = 0x\w+$", r"\1 = ZXID", done.stdout)
            out += [line, *split_events(answer, server)[0], f"exit {done.returncode}"]
    if rewrite:
        script.write_text("\n".join(out) + "\n")
    difference = list(difflib.unified_diff(script.read_text().splitlines(), out, "expected", "found", lineterm="", n=2))
    assert not difference, "\n" + "\n".join(difference)


SCRIPTS, SETTINGS = [zkcli], []
