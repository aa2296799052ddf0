#!/usr/bin/env bash
# ZooKeeper's shell, which is Java's: it is run if its jars and a Java are here.

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

real=java
[ -z "${JAVA_HOME:-}" ] || real="$JAVA_HOME/bin/java"
for jar in "${ZOOKEEPER_HOME:-/opt/zookeeper}"/lib/*.jar /usr/share/java/zookeeper.jar; do
  [ ! -e "$jar" ] || CLASSPATH="$jar:$CLASSPATH"
done
case $CLASSPATH in
  *zookeeper*.jar*) ;;
  *) real= ;;
esac
if [ -z "$real" ] || ! command -v "$real" > /dev/null || [ "$(readlink -f "$(command -v "$real")")" = "$(readlink -f "$JAVA")" ]; then
  echo "zkCli.sh: oxkeeper has no shell. It runs the one of ZooKeeper if ZOOKEEPER_HOME names an installation and JAVA_HOME a Java." >&2
  exit 1
fi
split_flags "$CLIENT_JVMFLAGS" "${JVMFLAGS:-}"
exec "$real" "-Dzookeeper.log.dir=$ZOO_LOG_DIR" "-Dzookeeper.log.file=zookeeper-${USER:-}-cli-$HOSTNAME.log" -cp "$CLASSPATH" "${FLAGS[@]}" \
  org.apache.zookeeper.ZooKeeperMain "$@"
