#!/usr/bin/env bash
# Prints, repairs or chops a transaction log: zkTxnLogToolkit.sh [-dhrvyc] FILE [-z ZXID]

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

split_flags "${JVMFLAGS:-}"
exec "$JAVA" -cp "$CLASSPATH" "${FLAGS[@]}" org.apache.zookeeper.server.persistence.TxnLogToolkit "$@"
