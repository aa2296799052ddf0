"""Scripts that are not ours, with a server of ours in place of the JVM: ZooKeeper's own, and what Debian's unit and Kafka's script call.

The scripts are those in the source of Debian's package, 3.8.0: those of 3.9.5 do the same on Linux, and one of them is new.
"""

import os
import re
import signal
import socket
import subprocess
import time

import cache
import script_calls

NEW = ["summary"]  # The call of a script that 3.8.0 does not have.
# What kafka-run-class.sh puts before the class when zookeeper-server-start.sh calls it; LOGS is a folder.
KAFKA = ("-Xmx512M -Xms512M -server -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent "
         "-XX:MaxInlineLevel=15 -Djava.awt.headless=true -Xlog:gc*:file=LOGS/zookeeper-gc.log:time,tags:filecount=10,filesize=100M "
         "-Dcom.sun.management.jmxremote -Dcom.sun.management.jmxremote.authenticate=false -Dcom.sun.management.jmxremote.ssl=false "
         "-Dkafka.logs.dir=LOGS -Dlog4j.configuration=file:LOGS/../config/log4j.properties -cp LOGS/../libs/a.jar:LOGS/../libs/b.jar "
         "-Djava.security.egd=file:/dev/urandom org.apache.zookeeper.server.quorum.QuorumPeerMain")


def source():
    """The folder of ZooKeeper's source in Debian, or None."""
    try:
        return cache.debian_source("zookeeper")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print(f"original scripts: left out, as apt has no source of zookeeper: {error}")
        return None


# rows: T-09 T-10
def original_scripts(base, server, expected):
    """ZooKeeper's own scripts say and do on ours what they do on Java. Yields the calls that differ."""
    tree = source()
    if tree:
        place = script_calls.Place(base / "original", tree / "bin", server=server)
        found = {name: lines for name, lines in script_calls.calls(place, without=NEW)}
        print(f"original scripts: {len(found)} calls")
        yield from script_calls.differences(found, expected)
        yield from ((f"{what} starts no server", [], lines) for what, lines in (("Debian's unit", of_unit(place, tree)), ("Kafka's script", of_kafka(place))) if lines)


def of_unit(place, tree):
    """Calls what Debian's unit calls, with its environment."""
    unit = (tree / "debian/zookeeperd.zookeeper.service").read_text()
    line = re.search(r"(?m)^ExecStart=(/usr/bin/java) (.*)$", unit)
    java = f"{place.environment['JAVA_HOME']}/bin/java"
    shell = f". {tree}/debian/conf_example/environment; ZOOCFG={place.folder}/conf/zoo.cfg; ZOO_LOG_DIR={place.folder}/logs; exec {java} {line[2]}"
    return serves(place, ["sh", "-c", shell])


def of_kafka(place):
    """Calls what Kafka's script calls, which reads the version of `java` first."""
    java = f"{place.environment['JAVA_HOME']}/bin/java"
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    major = re.search(r' version "([0-9]+)', shown.stdout + shown.stderr)
    assert major and int(major[1]) >= 9, shown
    options = KAFKA.replace("LOGS", f"{place.folder}/logs").split()
    return serves(place, [java, *options, place.folder / "conf/zoo.cfg"])


def serves(place, command):
    """Nothing if the command is a server that answers, and that ends at TERM; else what was seen."""
    with (place.folder / "call.log").open("w+") as log, subprocess.Popen(command, cwd=place.folder, env=place.environment, stdout=log, stderr=log,
                                                                         stdin=subprocess.DEVNULL) as process:
        deadline, answer = time.monotonic() + 60, b""
        while not answer.startswith(b"Zookeeper version") and process.poll() is None and time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", place.port), 5) as connection:
                    connection.sendall(b"srvr")
                    answer = connection.recv(4096)
            except OSError:
                time.sleep(0.05)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        code = process.wait(30)
        log.seek(0)
        return [] if code == 0 and answer.startswith(b"Zookeeper version") else [f"exit {code}", f"srvr: {answer!r}", *log.read().splitlines()[-20:]]
