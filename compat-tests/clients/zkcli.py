"""Java's zkCli, run by scripts that contain its output against a Java server: zkcli/*.txt."""

import difflib
import pathlib
import queue
import re
import subprocess
import threading

import server as tools
from workers import PATIENCE, wait

HERE = pathlib.Path(__file__).parent
# The settings of each script's server.
SETTINGS = {
    "tour": [],
    "usage": [],
    "settings": [
        "enforceQuota=true",
        "reconfigEnabled=true",
        "DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=",  # secret
    ],
}
# zkCli itself refuses this command with one line, connected or not: it marks the end of a command's output.
MARK, MARKED = "redo 1000000", "Command index out of range\n"


def normal(line, server):
    """A line of zkCli's output without what changes from run to run. Zxids stay: both servers must assign the same."""
    line = line.replace(server.address, "SERVER")
    if line.startswith("[") and line.endswith("]"):
        # Java lists children and ephemerals in hash order and promises no order.
        line = f"[{', '.join(sorted(line[1:-1].split(', ')))}]"
    line = re.sub(r"(ctime|mtime) = (?!.* 1970).*", r"\1 = TIME", line)
    return re.sub(r"0x1\w{14}\b", "SESSION", line)


# How zkCli prints an event; its threads don't wait for each other, so that an event may split a line of output.
EVENT = re.compile(r"\nWATCHER::\n\n(WatchedEvent[^\n]*)\n")


def split_events(text, server):
    """Output lines, and the watch events among them in the order in which they were printed; blank lines belong to the events."""
    events = [normal(event, server) for event in re.findall(r"WatchedEvent[^\n]*", text)]
    lines = [normal(line, server) for line in EVENT.sub("", text).splitlines() if line.strip() and line != "WATCHER::"]
    return [line for line in lines if not line.startswith("WatchedEvent")], events


class ZkCli:
    """One interactive zkCli process that runs all commands of a script."""

    def __init__(self, main, server):
        self.server, self.events, self.lines, self.early = server, [], queue.Queue(), []
        self.process = subprocess.Popen(main, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.ask("sync /")  # Skips the greeting.

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, command):
        self.process.stdin.write(f"{command.replace('SERVER', self.server.address)}\n{MARK}\n")
        self.process.stdin.flush()
        text, self.early = self.early, []
        while line := self.lines.get(timeout=PATIENCE):
            if line == MARKED:
                lines, events = split_events("".join(text), self.server)
                self.events += events
                # Java keeps authentication ids in a hash table.
                return lines[:1] + sorted(lines[1:]) if command == "whoami" else lines
            text.append(line)
        raise AssertionError(f"zkCli ended at {command!r}: {text}")

    def expect_events(self, count):
        """Waits until `count` events were printed. zkCli prints them in a thread of its own, also after later output."""
        while len(self.events) + len(split_events("".join(self.early), self.server)[1]) < count:
            line = self.lines.get(timeout=PATIENCE)
            assert line, f"zkCli ended before event {count}"
            self.early.append(line)

    def quit(self):
        """Exit status. Whether zkCli still prints that it was closed is a race between its threads: this event does not count."""
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        rest = "".join(self.early + [line for line in self.lines.queue if line])
        self.events += [event for event in split_events(rest, self.server)[1] if " state:Closed " not in event]
        return status


def script(name):
    def run(server, rewrite):
        compare(HERE / f"zkcli/{name}.txt", server, rewrite)

    run.__name__ = name
    return run


def compare(script, server, rewrite):
    """Runs every command of the script and compares the output with the script's, which is Java's."""
    off = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    main = tools.java(off, "-cp", tools.jars(), "org.apache.zookeeper.ZooKeeperMain", "-server", server.address)
    lines = script.read_text().splitlines()
    out = []
    # The interactive process runs first and alone, so that its zxids are the same on every run and on every server.
    shell = ZkCli(main, server)
    try:
        for line in lines:
            if line.startswith("#"):
                out.append(line)
            elif line.startswith("> ") and line != "> quit":
                out += [line, *shell.ask(line[2:])]
            elif line.startswith("! "):
                shell.expect_events(int(line[2:]))
                out.append(line)
            elif line.startswith("% "):
                wait("the end of a connection", lambda: shell.ask(line[2:]) == ["Not connected"])
                out.append(line)
        out += ["> quit", f"exit {shell.quit()}", "events", *shell.events]
    finally:
        shell.process.kill()
    for line in lines:
        if line.startswith("$ "):
            done = subprocess.run(main + line[2:].split(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
            # These zkCli processes, of one command each, exit without closing their sessions, which expire at any time later, each taking a zxid.
            answer = re.sub(r"(?m)^(.Zxid) = 0x\w+$", r"\1 = ZXID", done.stdout)
            out += [line, *split_events(answer, server)[0], f"exit {done.returncode}"]
    if rewrite:
        script.write_text("\n".join(out) + "\n")
    difference = list(difflib.unified_diff(script.read_text().splitlines(), out, "expected", "found", lineterm="", n=2))
    assert not difference, "\n" + "\n".join(difference)
