#!/usr/bin/env bash
# Runs a command beside the servers that the tests share, and stops them when it ends, whatever way it ends.
#
#   tests/run.sh                     every test
#   tests/run.sh COMMAND ARG...      that command, with the same environment
#
# The command finds:
#   BELLHOP_TEST_POSTGRES_URL    a PostgreSQL server on which it may create databases
#   BELLHOP_TEST_EMULATOR        host:port of Google's Pub/Sub emulator
#   BELLHOP_TEST_RUN             a word that marks all processes of this run
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/servers/ports.sh
source "$root/tests/servers/ports.sh"

# Not under $HOME: PostgreSQL may run as another user, who must be able to walk there.
dir=$(mktemp -d /tmp/bellhop-test.XXXXXX)
chmod 755 "$dir"
export BELLHOP_TEST_RUN=${dir##*/}
emulator=
command=

stop_everything() {
  local status=$? pid
  trap - EXIT INT TERM HUP
  [[ -z $command ]] || kill -- "-$command" 2>/dev/null || true
  if [[ -d $dir/postgres ]]; then
    "$root/tests/servers/postgres.sh" stop "$dir/postgres" immediate 2>/dev/null || true
  fi
  [[ -z $emulator ]] || kill "$emulator" 2>/dev/null || true
  # A test that was killed cannot stop the processes it had started.
  for pid in $(grep -lsz "^BELLHOP_TEST_RUN=$BELLHOP_TEST_RUN\$" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); do
    [[ $pid == "$$" || $pid == "$BASHPID" ]] || kill -9 "$pid" 2>/dev/null || true
  done
  if ((status != 0)) && [[ -n ${BELLHOP_TEST_KEEP:-} ]]; then
    echo "Kept $dir" >&2
  else
    rm -rf "$dir"
  fi
  exit "$status"
}
trap stop_everything EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

answers() {
  local reply
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET / HTTP/1.0\r\n\r\n' >&3
  read -r -t 2 reply <&3 || reply=
  exec 3>&-
  [[ $reply == HTTP/1.*\ 200* ]]
}

start_emulator() {
  local port
  for _ in {1..3}; do
    port=$(free_port)
    "$root/tests/servers/emulator.sh" run "$port" >"$dir/emulator.log" 2>&1 </dev/null &
    emulator=$!
    disown
    for _ in {1..300}; do
      if (answers "$port") 2>/dev/null; then
        export BELLHOP_TEST_EMULATOR=127.0.0.1:$port
        return 0
      fi
      kill -0 "$emulator" 2>/dev/null || break
      sleep 0.1
    done
    kill "$emulator" 2>/dev/null || true
  done
  echo "Google's Pub/Sub emulator does not start:" >&2
  tail -n 20 "$dir/emulator.log" >&2
  return 1
}

start_postgres() {
  local port
  "$root/tests/servers/postgres.sh" init "$dir/postgres"
  for _ in {1..3}; do
    port=$(free_port)
    if "$root/tests/servers/postgres.sh" start "$dir/postgres" "$port"; then
      export BELLHOP_TEST_POSTGRES_URL=postgres://postgres@127.0.0.1:$port/postgres
      return 0
    fi
  done
  echo "PostgreSQL does not start" >&2
  return 1
}

# The run must not depend on what the caller's shell happens to point at.
unset DATABASE_URL PUBSUB_EMULATOR_HOST PUBSUB_PROJECT_ID GOOGLE_APPLICATION_CREDENTIALS
for name in $(compgen -e BELLHOP_ | grep -v '^BELLHOP_TEST_' || true); do unset "$name"; done

start_emulator
start_postgres

cd "$root"
if (($# == 0)); then
  if cargo nextest --version >/dev/null 2>&1; then
    set -- cargo nextest run --locked --features testing
  else
    # More threads than cores: most tests wait for a server, not for the processor.
    set -- cargo test --locked --features testing --lib --bins --tests -- --test-threads=8
  fi
fi
# In the background, so that a signal to this script is handled at once and not when the command ends; in a process
# group of its own, so that it can be stopped whole and does not start with SIGINT ignored.
set -m
"$@" <&0 &
command=$!
set +m
wait "$command" && status=0 || status=$?
command=
exit "$status"
