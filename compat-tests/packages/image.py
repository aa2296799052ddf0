"""The image with the contract of ZooKeeper's official one: each variable, each user, each probe."""

import shutil

from archives import call, release, wait_for
from container import Container, unpack

DEFAULTS = """dataDir=/data
dataLogDir=/datalog
tickTime=2000
initLimit=5
syncLimit=2
autopurge.snapRetainCount=3
autopurge.purgeInterval=0
maxClientCnxns=60
standaloneEnabled=true
admin.enableServer=true
server.1=localhost:2888:3888;2181
"""
OTHERS = {"ZOO_MY_ID": "2", "ZOO_SERVERS": "server.2=localhost:2889:3889;2181", "ZOO_TICK_TIME": "1500", "ZOO_INIT_LIMIT": "7",
          "ZOO_SYNC_LIMIT": "3", "ZOO_AUTOPURGE_PURGEINTERVAL": "12", "ZOO_AUTOPURGE_SNAPRETAINCOUNT": "5", "ZOO_MAX_CLIENT_CNXNS": "77",
          "ZOO_STANDALONE_ENABLED": "false", "ZOO_ADMINSERVER_ENABLED": "false", "ZOO_4LW_COMMANDS_WHITELIST": "srvr, mntr,ruok, conf",
          "ZOO_CFG_EXTRA": "metricsProvider.httpPort=7001 maxSessionTimeout=50000", "ZOO_CONF_DIR": "/elsewhere/conf", "ZOOCFGDIR": "/elsewhere/conf",
          "ZOO_DATA_DIR": "/elsewhere/data", "ZOO_DATA_LOG_DIR": "/elsewhere/datalog", "ZOO_LOG_DIR": "/elsewhere/logs"}
OTHER_LINES = """dataDir=/elsewhere/data
dataLogDir=/elsewhere/datalog
tickTime=1500
initLimit=7
syncLimit=3
autopurge.snapRetainCount=5
autopurge.purgeInterval=12
maxClientCnxns=77
standaloneEnabled=false
admin.enableServer=false
server.2=localhost:2889:3889;2181
4lw.commands.whitelist=srvr, mntr,ruok, conf
metricsProvider.httpPort=7001
maxSessionTimeout=50000
"""
# As they stand in charts, manifests and compose files.
PROBES = """echo ruok | nc -w 2 localhost 2181 | grep imok
echo "ruok" | timeout 2 nc -w 2 localhost 2181 | grep imok
[ "$(echo ruok | nc 127.0.0.1 2181)" = imok ]
echo srvr | nc -w 1 localhost 2181 | grep -q Mode
echo mntr | nc -w 2 -q 1 localhost 2181 | grep zk_server_state
exec 3<>/dev/tcp/127.0.0.1/2181 && echo srvr >&3 && grep '^Mode: ' <&3
zkServer.sh status
curl -s http://localhost:8080/commands/ruok | grep error | grep null
wget -qO- http://localhost:8080/commands/srvr | grep server_stats
curl -sf http://localhost:8080/ready
curl -sf http://localhost:8080/live
ps -ef | grep zoo.cfg | grep -v grep
/apache-zookeeper-3.9.5-bin/bin/zkServer.sh status
oxkeeper 4lw localhost 2181 srvr | grep Mode"""
# The start and the configuration of a pod of Stackable's operator, and of Pravega's, as their sources have them.
STACKABLE = """admin.serverPort=8080
clientPort=2282
dataDir=/stackable/data
initLimit=5
syncLimit=2
tickTime=3000
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpPort=7000
"""
STACKABLE_RUNS = "cp -RL /stackable/config/* /stackable/rwconfig; echo 1 > /stackable/data/myid; " \
    "bin/zkServer.sh start-foreground /stackable/rwconfig/zoo.cfg & trap 'kill $!' TERM; wait $! || wait $!"
STACKABLE_FLAGS = "-Djava.security.properties=/stackable/config/security.properties " \
    "-javaagent:/stackable/jmx/jmx_prometheus_javaagent.jar=9505:/stackable/jmx/server.yaml -Dlogback.configurationFile=/stackable/log_config/logback.xml"
PRAVEGA = """4lw.commands.whitelist=cons, envi, conf, crst, srvr, stat, mntr, ruok
dataDir=/data
standaloneEnabled=false
reconfigEnabled=true
skipACL=yes
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpPort=7000
metricsProvider.exportJvmInfo=true
initLimit=10
syncLimit=2
tickTime=2000
globalOutstandingLimit=1000
preAllocSize=16384
snapCount=10000
commitLogCount=500
snapSizeLimitInKb=4194304
maxCnxns=0
maxClientCnxns=60
minSessionTimeout=4000
maxSessionTimeout=40000
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
quorumListenOnAllIPs=false
admin.serverPort=8080
dynamicConfigFile=/data/zoo.cfg.dynamic
"""
PRAVEGA_RUNS = "mkdir -p /data/conf; cp -f /conf/zoo.cfg /data/conf; echo 1 > /data/myid; " \
    "echo 'server.1=localhost:2888:3888:participant;2181' > /data/zoo.cfg.dynamic; zkServer.sh --config /data/conf start-foreground"
WORDS = {"ZOO_4LW_COMMANDS_WHITELIST": "*"}


def fresh(folder, name):
    path = folder / "containers" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def defaults(bundle, folder):
    place = fresh(folder, "defaults")
    with Container(bundle, place) as box:
        assert "standalone" in box.serves()
        assert box.config() == DEFAULTS, box.config()
        assert (place / "data/myid").read_text() == "1\n"
        assert box.owner() == (1000, "oxkeeper"), box.owner()
        assert (place / "datalog/version-2").is_dir() and (place / "data/version-2").is_dir()
        assert box.terminate() == 0, box.log.read_text()
    # What is there is kept.
    (place / "conf/zoo.cfg").write_text(DEFAULTS.replace("tickTime=2000", "tickTime=2222"))
    with Container(bundle, place, {"ZOO_TICK_TIME": "9", "ZOO_MY_ID": "9"}) as box:
        box.serves()
        assert "tickTime=2222" in box.config() and (place / "data/myid").read_text() == "1\n"


def variables(bundle, folder):
    place = fresh(folder, "variables")
    names = [OTHERS[name] for name in ("ZOO_CONF_DIR", "ZOO_DATA_DIR", "ZOO_DATA_LOG_DIR", "ZOO_LOG_DIR")]
    for name in names:
        (bundle / "rootfs" / name[1:]).mkdir(parents=True, exist_ok=True)
    with Container(bundle, place, OTHERS, volumes=names) as box:
        box.serves()
        found = (box.volumes["/elsewhere/conf"] / "zoo.cfg").read_text()
        assert found == OTHER_LINES, found
        assert (box.volumes["/elsewhere/data"] / "myid").read_text() == "2\n"
        shown = box.run("/bin/bash", "-c", "echo conf | nc -w 2 localhost 2181")
        for line in ("tickTime=1500", "maxClientCnxns=77", "serverId=2", "initLimit=7", "syncLimit=3", "maxSessionTimeout=50000"):
            assert line in shown, shown
        assert box.probe("curl", "-s", "http://localhost:8080/commands") is None, "AdminServer is on"


def users(bundle, folder):
    for user in ("1000", "4321"):
        place = fresh(folder, f"user-{user}")
        box = Container(bundle, place, WORDS, user=user)
        for path in box.volumes.values():
            call("chown", user, path)
        with box:
            box.serves()
            assert box.owner() == (int(user), "oxkeeper"), box.owner()
            assert box.terminate() == 0


def read_only(bundle, folder):
    with Container(bundle, fresh(folder, "read-only"), WORDS, user="1000", read_only=True) as box:
        box.serves()
        assert box.probe("touch", "/oxkeeper/x") is None, "the root is writable"
        assert box.probe("zkServer.sh", "status")
        assert box.terminate() == 0


def probes(bundle, folder):
    with Container(bundle, fresh(folder, "probes"), WORDS) as box:
        box.serves()
        wait_for(lambda: box.probe("curl", "-sf", "http://localhost:8080/ready") is not None)
        for line in PROBES.splitlines():
            assert box.probe("/bin/bash", "-c", line) is not None, f"fails: {line}: {box.run('/bin/bash', '-c', line, check=False)}"
        box.terminate()


def commands(bundle, folder):
    place = fresh(folder, "commands")
    scripts = place / "entrypoint.d"
    scripts.mkdir()
    (scripts / "10-ticks.envsh").write_text("export ZOO_TICK_TIME=1234\n")
    (scripts / "20-note.sh").write_text("#!/bin/sh\nid -u > /data/note\n")
    (scripts / "20-note.sh").chmod(0o755)
    (scripts / "30-plain.sh").write_text("touch /data/never\n")
    box = Container(bundle, place)
    box.volumes["/docker-entrypoint.d"] = scripts
    with box:
        box.serves()
        assert "tickTime=1234\n" in box.config()
        assert (place / "data/note").read_text() == "1000\n" and not (place / "data/never").exists()
        assert "not executable" in box.log.read_text()
    with Container(bundle, fresh(folder, "command"), command=["bash", "-c", "id -u; oxkeeper version; java -version"]) as box:
        assert box.process.wait(20) == 0
        said = box.log.read_text()
        assert said.startswith("0\noxkeeper ") and "version" in said.splitlines()[2], said


def charts(bundle, folder):
    """What operators of Kubernetes start in their images, and ask."""
    names = ("/stackable/config", "/stackable/rwconfig", "/stackable/data")
    for name in names:
        (bundle / "rootfs" / name[1:]).mkdir(parents=True, exist_ok=True)
    flags = {"ZOOCFGDIR": "/stackable/rwconfig", "ZK_SERVER_HEAP": "409", "SERVER_JVMFLAGS": STACKABLE_FLAGS}
    run = ["/bin/bash", "-euo", "pipefail", "-c", STACKABLE_RUNS]
    box = Container(bundle, fresh(folder, "stackable"), flags, user="1000", command=run, volumes=(*names, "/logs"))
    (box.volumes["/stackable/config"] / "zoo.cfg").write_text(STACKABLE)
    with box:
        wait_for(lambda: box.probe("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/2282 && echo srvr >&3 && grep '^Mode: ' <&3"))
        assert "zk_version" in box.run("curl", "-s", "http://localhost:7000/metrics") or "# HELP" in box.run("curl", "-s", "http://localhost:7000/metrics")
        box.terminate()
        assert "stopped: everything acknowledged is on disk" in box.log.read_text(), box.log.read_text()[-2000:]
    box = Container(bundle, fresh(folder, "pravega"), user="1000", command=["bash", "-exc", PRAVEGA_RUNS])
    (box.volumes["/conf"] / "zoo.cfg").write_text(PRAVEGA)
    with box:
        box.serves()
        assert "Mode: leader" in box.run("oxkeeper", "4lw", "localhost", "2181", "srvr")
        assert "server.1=localhost:2888:3888:participant" in "".join(path.read_text() for path in box.volumes["/data"].glob("zoo.cfg.dynamic*"))
        box.run("bash", "-c", "ps -ef | grep zoo.cfg | grep -v grep | awk '{print $2}' | xargs kill", check=False)
        box.process.wait(30)
        assert "stopped: everything acknowledged is on disk" in box.log.read_text(), box.log.read_text()[-2000:]


PARTS = (defaults, variables, users, read_only, probes, commands, charts)


def full(folder, server):
    bundle = unpack(next(layouts(folder, server).glob("*-image")), folder / "bundle")
    for part in PARTS:
        part(bundle, folder)
    return ", ".join(part.__name__ for part in PARTS)


def layouts(folder, server):
    return release(folder / "images", server, more=("--images",))


KERBEROS = """Server {
  com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/conf/none.keytab" principal="zookeeper/host@REALM";
};
"""


def static(folder, server):
    """The program alone: serves, answers its probe, finds hosts by name, refuses Kerberos in words, ends at TERM."""
    found = list(layouts(folder, server).glob("*-image-static"))
    if not found:
        return "left out: no --static"
    bundle = unpack(found[0], folder / "static")
    files = [path for path in (bundle / "rootfs").rglob("*") if path.is_file() and not path.name.isupper()]
    programs = [path.name for path in files if path.stat().st_mode & 0o111]
    assert programs == ["oxkeeper"], programs
    volumes = ("/data",)
    with Container(bundle, fresh(folder, "static"), volumes=volumes) as box:
        wait_for(lambda: box.probe("/usr/bin/oxkeeper", "4lw", "localhost", "2181", "srvr"))
        assert "Mode: standalone" in box.run("/usr/bin/oxkeeper", "4lw", "localhost", "2181", "srvr")
        assert box.owner() == (1000, "oxkeeper")
        bench = box.run("/usr/bin/oxkeeper", "bench", "--server", "localhost:2181", "--duration", "1s", "--warm-up", "100ms", "--keys", "100")
        assert "ops/s" in bench, bench
        assert box.terminate() == 0
    conf = fresh(folder, "static-kerberos")
    box = Container(bundle, conf, command=["-Djava.security.auth.login.config=/conf/jaas.conf", "/conf/zoo.cfg"], volumes=("/data", "/conf"))
    (box.volumes["/conf"] / "jaas.conf").write_text(KERBEROS)
    (box.volumes["/conf"] / "zoo.cfg").write_text("dataDir=/data\nclientPort=2181\nauthProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n")
    with box:
        assert box.process.wait(20) != 0
        assert "linked statically" in box.log.read_text(), box.log.read_text()
    size = sum(path.stat().st_size for path in found[0].rglob("*") if path.is_file())
    return f"serves, {size / 1e6:.1f} MB"
