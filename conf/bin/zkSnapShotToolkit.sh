#!/usr/bin/env bash
# Prints a snapshot: zkSnapShotToolkit.sh [-d|-json] FILE

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

split_flags "${JVMFLAGS:-}"
exec "$JAVA" -cp "$CLASSPATH" "${FLAGS[@]}" org.apache.zookeeper.server.SnapshotFormatter "$@"
