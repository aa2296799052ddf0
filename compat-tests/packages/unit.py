"""The unit of systemd: its own checks, and what the server tells it."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess

from archives import ROOT, call
from server import free_port

UNIT = ROOT / "conf/oxkeeper.service"
# Points out of 100 in `systemd-analyze security`: the lower, the less a server that was taken over can do.
EXPOSURE_MAX = 20


def checked(folder, server):
    if not shutil.which("systemd-analyze"):
        return "left out: no systemd-analyze here"
    copy = folder / "unit/oxkeeper.service"
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(UNIT.read_text().replace("/usr/bin/oxkeeper", str(server)))
    said = call("systemd-analyze", "verify", copy)
    assert not said.strip(), f"systemd-analyze verify says: {said}"
    said = call("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", UNIT)
    return said.strip().splitlines()[-1].lstrip("→ ")


def notified(folder, server):
    """READY once words are answered, STOPPING at TERM; a configuration that is wrong tells neither, and ends with the code that is not restarted."""
    home = folder / "notify"
    home.mkdir()
    port = free_port()
    (home / "zoo.cfg").write_text(f"dataDir={home / 'data'}\nclientPort={port}\nadmin.enableServer=false\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears:
        hears.bind(str(home / "notify"))
        hears.settimeout(20)
        environment = {**os.environ, "NOTIFY_SOCKET": str(home / "notify")}
        with subprocess.Popen([server, home / "zoo.cfg"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                assert hears.recv(64) == b"READY=1"
                with socket.create_connection(("127.0.0.1", port), timeout=5) as asks:
                    asks.sendall(b"srvr")
                    assert b"ookeeper" in asks.recv(4096), "ready, and no answer to srvr"
                process.send_signal(signal.SIGTERM)
                assert hears.recv(64) == b"STOPPING=1"
                assert process.wait(20) == 0
            finally:
                process.kill()
        (home / "zoo.cfg").write_text("dataDir=/nowhere\nclientPort=none\n")
        ended = subprocess.run([server, home / "zoo.cfg"], env=environment, capture_output=True, timeout=20)
        hears.setblocking(False)
        try:
            raise AssertionError(f"notified of {hears.recv(64)} without a configuration")
        except BlockingIOError:
            pass
    prevented = next(line for line in UNIT.read_text().splitlines() if line.startswith("RestartPreventExitStatus=")).partition("=")[2]
    assert str(ended.returncode) in prevented.split(), f"exit code {ended.returncode} would be restarted"
    return "READY when it serves, STOPPING at TERM"
