#!/usr/bin/env bash
# The environment of the other scripts here, which source it: where the configuration, the logs and the program are.
# shellcheck disable=SC2034 # The scripts that source it use its variables.
# Reads `--config DIR` off the front of the arguments; sources zookeeper-env.sh and java.env of the configuration's folder.

ZOOBINDIR="${ZOOBINDIR:-/usr/bin}"
ZOOKEEPER_PREFIX="$ZOOBINDIR/.."

if [ $# -gt 1 ] && [ "$1" = "--config" ]; then
  ZOOCFGDIR=$2
  shift 2
fi
if [ -z "${ZOOCFGDIR:-}" ]; then
  ZOOCFGDIR="$ZOOBINDIR/../etc/zookeeper"
  [ ! -e "$ZOOKEEPER_PREFIX/conf" ] || ZOOCFGDIR="$ZOOBINDIR/../conf"
fi

if [ -f "$ZOOCFGDIR/zookeeper-env.sh" ]; then
  # shellcheck source=/dev/null
  . "$ZOOCFGDIR/zookeeper-env.sh"
fi
ZOOCFG="$ZOOCFGDIR/${ZOOCFG:-zoo.cfg}"
if [ -f "$ZOOCFGDIR/java.env" ]; then
  # shellcheck source=/dev/null
  . "$ZOOCFGDIR/java.env"
fi
ZOO_LOG_DIR="${ZOO_LOG_DIR:-$ZOOKEEPER_PREFIX/logs}"

# Our program under the name java; these scripts also run on a real Java, if ours is not beside them.
if [ -x "$ZOOKEEPER_PREFIX/libexec/bin/java" ]; then
  JAVA="$ZOOKEEPER_PREFIX/libexec/bin/java"
elif [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; then
  JAVA="$JAVA_HOME/bin/java"
elif command -v java > /dev/null; then
  JAVA=java
else
  echo "Error: neither $ZOOKEEPER_PREFIX/libexec/bin/java nor a java of JAVA_HOME or PATH was found." >&2
  exit 1
fi

CLASSPATH="$ZOOCFGDIR:${CLASSPATH:-}"
for jar in "$ZOOKEEPER_PREFIX"/zookeeper-*.jar "$ZOOKEEPER_PREFIX"/lib/*.jar; do
  [ ! -e "$jar" ] || CLASSPATH="$jar:$CLASSPATH"
done

# The size of a JVM's heap. oxkeeper has no heap, and ignores -X options.
export SERVER_JVMFLAGS="-Xmx${ZK_SERVER_HEAP:-1000}m ${SERVER_JVMFLAGS:-}"
export CLIENT_JVMFLAGS="-Xmx${ZK_CLIENT_HEAP:-256}m ${CLIENT_JVMFLAGS:-}"

# The value of a key of the configuration; the last line of that key counts.
setting() {
  sed -n "s/^[[:space:]]*$1[[:space:]]*[=:]//p" "${2:-$ZOOCFG}" 2> /dev/null | sed 's/^[[:space:]]*//; s/[[:space:]]*$//' | tail -n 1
}

# Splits flags at white space, as a shell does with an unquoted variable, but expands no file names.
split_flags() {
  read -r -a FLAGS <<< "$(printf '%s ' "$@" | tr '\n' ' ')"
}
