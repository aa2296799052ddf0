#!/usr/bin/env bash
# Starts, stops and asks one server: zkServer.sh [--config DIR] {start|start-foreground|stop|version|restart|status|print-cmd} [CONFIG]
# Environment: as zkEnv.sh, and ZOOPIDFILE, ZOO_LOG_FILE, ZOO_DATADIR_AUTOCREATE_DISABLE, ZOOMAIN, ZOO_NOEXEC.

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
given_main=${ZOOMAIN:-}
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

# JMX is the JVM's: its variables have no effect.
ZOOMAIN=${given_main:-org.apache.zookeeper.server.quorum.QuorumPeerMain}
JVMFLAGS="$SERVER_JVMFLAGS ${JVMFLAGS:-}"

# A plain name is a file of the configuration's folder, anything with a slash is a path.
case ${2:-} in
  '') ;;
  */*) ZOOCFG=$2 ;;
  *) ZOOCFG="$ZOOCFGDIR/$2" ;;
esac
echo "Using config: $ZOOCFG" >&2

data=$(setting dataDir)
logs=$(setting dataLogDir)
autocreate=()
if [ -n "${ZOO_DATADIR_AUTOCREATE_DISABLE:-}" ]; then
  if [ ! -d "$data/version-2" ]; then
    echo "ZooKeeper data directory is missing at $data fix the path or run initialize"
    exit 1
  fi
  if [ -n "$logs" ] && [ ! -d "$logs/version-2" ]; then
    echo "ZooKeeper txnlog directory is missing at $logs fix the path or run initialize"
    exit 1
  fi
  autocreate=(-Dzookeeper.datadir.autocreate=false)
fi
if [ -n "${ZOOPIDFILE:-}" ]; then
  mkdir -p "$(dirname "$ZOOPIDFILE")"
else
  [ -d "$data" ] || mkdir -p "$data"
  ZOOPIDFILE="$data/zookeeper_server.pid"
fi
[ -w "$ZOO_LOG_DIR" ] || mkdir -p "$ZOO_LOG_DIR"
ZOO_LOG_FILE=${ZOO_LOG_FILE:-zookeeper-${USER:-}-server-$HOSTNAME.log}
out="$ZOO_LOG_DIR/zookeeper-${USER:-}-server-$HOSTNAME.out"

split_flags "$JVMFLAGS" "$ZOOMAIN"
server=("$JAVA" "${autocreate[@]}" "-Dzookeeper.log.dir=$ZOO_LOG_DIR" "-Dzookeeper.log.file=$ZOO_LOG_FILE"
  -XX:+HeapDumpOnOutOfMemoryError "-XX:OnOutOfMemoryError=kill -9 %p" -cp "$CLASSPATH" "${FLAGS[@]}" "$ZOOCFG")

start() {
  echo -n "Starting zookeeper ... "
  if [ -f "$ZOOPIDFILE" ] && kill -0 "$(cat "$ZOOPIDFILE")" > /dev/null 2>&1; then
    echo "already running as process $(cat "$ZOOPIDFILE")."
    exit 1
  fi
  nohup "${server[@]}" > "$out" 2>&1 < /dev/null &
  if ! printf %s "$!" > "$ZOOPIDFILE"; then
    echo FAILED TO WRITE PID
    exit 1
  fi
  sleep 1
  if kill -0 "$(cat "$ZOOPIDFILE")" 2> /dev/null; then
    echo STARTED
  else
    echo FAILED TO START
    exit 1
  fi
}

stop() {
  echo -n "Stopping zookeeper ... "
  if [ -f "$ZOOPIDFILE" ]; then
    kill "$(cat "$ZOOPIDFILE")"
    rm "$ZOOPIDFILE"
    sleep 1
    echo STOPPED
  else
    echo "no zookeeper to stop (could not find file $ZOOPIDFILE)"
  fi
}

# The client port of this server's line in a configuration: of `server.N=host:2888:3888;[address:]port`.
port_of_member() {
  local id=$1 line
  line=$(setting "server\\.$id" "$2")
  case $line in *\;*) printf %s "${line##*;}" ;; esac
}

# Sets port and address from the line of this server in the static or the dynamic file.
find_port_of_member() {
  local id found
  id=$(cat "$data/myid" 2> /dev/null)
  case $id in
    '' | *[!0-9]*)
      echo "myid could not be determined, will not able to locate clientPort in the server configs."
      return ;;
  esac
  found=$(port_of_member "$id" "$ZOOCFG")
  if [ -z "$found" ]; then
    echo "Client port not found in static config file. Looking in dynamic config file."
    found=$(port_of_member "$id" "$(setting dynamicConfigFile)")
  fi
  if [ -z "$found" ]; then
    echo "Client port not found in the server configs"
    return
  fi
  port=${found##*:}
  case $found in
    \[*\]:*) address=${found%%]:*}; address=${address#[} ;;
    *:*) address=${found%%:*} ;;
  esac
}

status() {
  local secure=false address port
  address=$(setting clientPortAddress)
  address=${address:-localhost}
  port=$(setting clientPort)
  case $port in '' | *[!0-9]*) port=; find_port_of_member ;; esac
  if [ -z "$port" ]; then
    echo "Client port not found. Looking for secureClientPort in the static config."
    port=$(setting secureClientPort)
    if [ -z "$port" ]; then
      echo "Unable to find either secure or unsecure client port in any configs. Terminating."
      exit 1
    fi
    secure=true
    address=$(setting secureClientPortAddress)
    address=${address:-localhost}
  fi
  echo "Client port found: $port. Client address: $address. Client SSL: $secure."
  split_flags "$CLIENT_JVMFLAGS" "$JVMFLAGS"
  if mode=$("$JAVA" -cp "$CLASSPATH" "${FLAGS[@]}" org.apache.zookeeper.client.FourLetterWordMain "$address" "$port" srvr $secure 2> /dev/null | grep Mode); then
    echo "$mode"
    exit 0
  fi
  if [ $secure = true ]; then
    echo "The port that was asked, $port, has TLS: CLIENT_JVMFLAGS must name the key store and the trust store for it."
  fi
  echo "Error contacting service. It is probably not running."
  exit 1
}

case ${1:-} in
  start) start ;;
  start-foreground)
    if [ -n "${ZOO_NOEXEC:-}" ]; then "${server[@]}"; else exec "${server[@]}"; fi ;;
  print-cmd)
    printf '"%s" %s -Dzookeeper.log.dir="%s" -Dzookeeper.log.file="%s" ' "$JAVA" "${autocreate[*]}" "$ZOO_LOG_DIR" "$ZOO_LOG_FILE"
    printf -- "-XX:+HeapDumpOnOutOfMemoryError -XX:OnOutOfMemoryError='kill -9 %%p' -cp \"%s\" %s \"%s\" > \"%s\" 2>&1 < /dev/null\n" \
      "$CLASSPATH" "${FLAGS[*]}" "$ZOOCFG" "$out" ;;
  stop) stop ;;
  version) "$JAVA" -cp "$CLASSPATH" org.apache.zookeeper.version.VersionInfoMain 2> /dev/null ;;
  restart)
    shift
    "$0" stop "$@"
    sleep 3
    "$0" start "$@" ;;
  status) status ;;
  *) echo "Usage: $0 [--config <conf-dir>] {start|start-foreground|stop|version|restart|status|print-cmd}" >&2 ;;
esac
