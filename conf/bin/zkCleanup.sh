#!/usr/bin/env bash
# Removes old snapshots and transaction logs of the configured server: zkCleanup.sh -n COUNT

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

data=$(setting dataDir)
logs=$(setting dataLogDir)
split_flags "${JVMFLAGS:-}"
exec "$JAVA" "-Dzookeeper.log.dir=$ZOO_LOG_DIR" -cp "$CLASSPATH" "${FLAGS[@]}" org.apache.zookeeper.server.PurgeTxnLog \
  ${logs:+"$logs"} "$data" "$@"
