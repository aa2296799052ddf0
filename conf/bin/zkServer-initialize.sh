#!/usr/bin/env bash
# Makes empty data folders for a new server: zkServer-initialize.sh [--configfile=FILE] [--myid=N] [--force]

ZOOBINDIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=conf/bin/zkEnv.sh
. "$ZOOBINDIR/zkEnv.sh"

usage() {
  printf 'usage: %s <parameters>\n  Optional parameters:\n' "$0"
  printf '     %-53s %s\n' -h "Display this message" --help "Display this message"
  printf '     --configfile=%-40s ZooKeeper config file\n' "$ZOOCFG"
  printf '     %-53s %s\n' --myid=# "Set the myid to be used, if any (1-255)" --force "Force creation of the data/txnlog dirs"
  exit 1
}

fail() {
  echo "$1"
  exit 1
}

id='' force=''
while [ -n "${1:-}" ]; do
  case $1 in
    --configfile) ZOOCFG=$2; shift 2 ;;
    --configfile=?*) ZOOCFG=${1#*=}; shift ;;
    --myid) id=$2; shift 2 ;;
    --myid=?*) id=${1#*=}; shift ;;
    --force) force=yes; shift ;;
    -h | --help) usage ;;
    *) echo "Unknown option: $1"; usage ;;
  esac
done

[ -e "$ZOOCFG" ] || fail "Unable to find config file at $ZOOCFG"
data=$(setting dataDir)
logs=$(setting dataLogDir)
[ -n "$data" ] || fail "Unable to determine dataDir from $ZOOCFG"
if [ -n "$force" ]; then
  echo "Force enabled, data/txnlog directories will be re-initialized"
else
  [ ! -d "$data/version-2" ] || fail "ZooKeeper data directory already exists at $data (or use --force to force re-initialization)"
  [ -z "$logs" ] || [ ! -d "$logs/version-2" ] ||
    fail "ZooKeeper txnlog directory already exists at $logs (or use --force to force re-initialization)"
fi

# Removes and makes only what is the server's own: the folders above may have owners and modes that an operator chose.
for folder in "$data" ${logs:+"$logs"}; do
  rm -rf "${folder:?}/myid" "$folder/version-2" 2> /dev/null
  mkdir -p "$folder/version-2"
done
if [ -n "$id" ]; then
  echo "Using myid of $id"
  echo "$id" > "$data/myid"
else
  echo "No myid provided, be sure to specify it in $data/myid if using non-standalone"
fi
# The server looks for `initialize` beside the logs.
touch "${logs:-$data}/initialize"
