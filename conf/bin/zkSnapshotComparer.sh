#!/usr/bin/env bash
# Compares two snapshots: zkSnapshotComparer.sh -l FILE -r FILE -b BYTES -n ZNODES [-d] [-i]

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

split_flags "${JVMFLAGS:-}"
exec "$JAVA" -cp "$CLASSPATH" "${FLAGS[@]}" org.apache.zookeeper.server.SnapshotComparer "$@"
