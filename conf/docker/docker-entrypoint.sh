#!/usr/bin/env bash
# The image's entry point: becomes the user zookeeper, runs what operators put into /docker-entrypoint.d, writes zoo.cfg and myid if there are
# none, and becomes the command.
set -e

# As root the command runs as zookeeper; `--user` keeps the user that it names.
if [ "$1" = zkServer.sh ] && [ "$(id -u)" = 0 ]; then
  find "$ZOO_DATA_DIR" "$ZOO_DATA_LOG_DIR" "$ZOO_LOG_DIR" ! -user zookeeper -exec chown -h zookeeper {} +
  exec gosu zookeeper "$0" "$@"
fi

# In the order of their names: *.envsh are sourced and may set the variables below, *.sh are run.
for script in /docker-entrypoint.d/*; do
  case $script in
    *.envsh)
      # shellcheck source=/dev/null
      . "$script" ;;
    *.sh)
      if [ -x "$script" ]; then "$script"; else echo "$0: $script is left out: it is not executable" >&2; fi ;;
  esac
done

# One line for each word; a word is no pattern of files.
lines() {
  local words
  read -r -d '' -a words <<< "$1" || true
  [ ${#words[@]} = 0 ] || printf '%s\n' "${words[@]}"
}

if [ ! -f "$ZOO_CONF_DIR/zoo.cfg" ]; then
  {
    cat << EOF
dataDir=$ZOO_DATA_DIR
dataLogDir=$ZOO_DATA_LOG_DIR
tickTime=$ZOO_TICK_TIME
initLimit=$ZOO_INIT_LIMIT
syncLimit=$ZOO_SYNC_LIMIT
autopurge.snapRetainCount=$ZOO_AUTOPURGE_SNAPRETAINCOUNT
autopurge.purgeInterval=$ZOO_AUTOPURGE_PURGEINTERVAL
maxClientCnxns=$ZOO_MAX_CLIENT_CNXNS
standaloneEnabled=$ZOO_STANDALONE_ENABLED
admin.enableServer=$ZOO_ADMINSERVER_ENABLED
EOF
    lines "${ZOO_SERVERS:-server.1=localhost:2888:3888;2181}"
    [ -z "$ZOO_4LW_COMMANDS_WHITELIST" ] || echo "4lw.commands.whitelist=$ZOO_4LW_COMMANDS_WHITELIST"
    lines "$ZOO_CFG_EXTRA"
  } > "$ZOO_CONF_DIR/zoo.cfg"
fi

if [ ! -f "$ZOO_DATA_DIR/myid" ]; then
  echo "${ZOO_MY_ID:-1}" > "$ZOO_DATA_DIR/myid"
fi

exec "$@"
