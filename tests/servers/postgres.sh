#!/usr/bin/env bash
# Runs a throw-away PostgreSQL cluster on the loopback. The test set-up and the tests themselves use it.
#
#   postgres.sh find                 prints the directory of the server programs; fails when there is none
#   postgres.sh init  DIR            makes a cluster in DIR (must not exist)
#   postgres.sh start DIR PORT       starts it and waits until it answers
#   postgres.sh stop  DIR            fast shutdown: open transactions are rolled back
#   postgres.sh kill  DIR            kill -9 of the whole cluster, as if the machine had lost power
#
# PostgreSQL refuses to run as root, so root runs it as user postgres (or nobody).
set -euo pipefail

find_bin() {
  local dir
  for dir in "${BELLHOP_TEST_POSTGRES_BIN:-}" $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -rV) \
    /opt/homebrew/opt/postgresql*/bin /usr/local/pgsql/bin "$(pg_config --bindir 2>/dev/null || true)"; do
    if [[ -n $dir && -x $dir/initdb && -x $dir/postgres ]]; then
      echo "$dir"
      return 0
    fi
  done
  return 1
}

# Runs a server program as somebody who may.
as_owner() {
  if [[ $EUID -ne 0 ]]; then
    "$@"
  elif id postgres >/dev/null 2>&1; then
    (cd / && runuser -u postgres -- "$@")
  else
    (cd / && runuser -u nobody -- "$@")
  fi
}

give_to_owner() {
  if [[ $EUID -eq 0 ]]; then
    if id postgres >/dev/null 2>&1; then chown postgres "$1"; else chown nobody "$1"; fi
  fi
}

command=${1:?postgres.sh needs a command}
bin=$(find_bin) || { echo "no PostgreSQL server programs found (initdb, postgres)" >&2; exit 1; }
case $command in
  find)
    echo "$bin"
    ;;
  init)
    dir=${2:?}
    mkdir -m 700 "$dir"
    give_to_owner "$dir"
    as_owner "$bin/initdb" --pgdata="$dir/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C \
      --no-sync --no-instructions >/dev/null
    # Speed over durability: a killed server still recovers; only a crash of the whole machine would lose the data.
    as_owner tee -a "$dir/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
full_page_writes = off
max_connections = 400
shared_buffers = 64MB
autovacuum_naptime = 10s
log_min_messages = warning
CONF
    ;;
  start)
    dir=${2:?} port=${3:?}
    as_owner "$bin/pg_ctl" start --pgdata="$dir/data" --log="$dir/log" --options="-p $port" --wait --timeout=60 \
      >/dev/null </dev/null || { as_owner tail -n 20 "$dir/log" >&2; exit 1; }
    ;;
  stop)
    dir=${2:?}
    as_owner "$bin/pg_ctl" stop --pgdata="$dir/data" --mode="${3:-fast}" --wait --timeout=60 >/dev/null
    ;;
  kill)
    dir=${2:?}
    # pg_ctl would let the other processes clean up; a power cut does not.
    postmaster=$(as_owner head -n 1 "$dir/data/postmaster.pid")
    children=$(cat "/proc/$postmaster/task/$postmaster/children" 2>/dev/null || pgrep -P "$postmaster" || true)
    # shellcheck disable=SC2086
    kill -9 "$postmaster" $children 2>/dev/null || true
    while kill -0 "$postmaster" 2>/dev/null; do sleep 0.02; done
    ;;
  *)
    echo "postgres.sh: no command $command" >&2
    exit 2
    ;;
esac
