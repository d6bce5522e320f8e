#!/usr/bin/env bash
# Prints what a real bellhop exports after a few events: `bellhop demo` brings the Pub/Sub server and the events, a second
# bellhop without a database takes its share of them and is scraped.
#
#   BELLHOP_BIN    the program (target/debug/bellhop)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BELLHOP_BIN:-$root/target/debug/bellhop}
if [[ ! -x $bin ]]; then
  printf '\nMissing: %s\n  why: the metrics it really exports are compared with rules and dashboard\n  how: cargo build, or set BELLHOP_BIN\n' "$bin" >&2
  exit 1
fi

bin=$(realpath "$bin")

dir=$(mktemp -d /tmp/bellhop-scrape.XXXXXX)
daemon=
demo=
finish() {
  local pid
  for pid in $daemon $demo; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$dir"
}
trap finish EXIT

for name in $(compgen -e BELLHOP_ || true) DATABASE_URL PUBSUB_EMULATOR_HOST KUBERNETES_SERVICE_HOST; do unset "$name"; done

# They are read while their writers have perhaps not begun.
: >"$dir/demo"
: >"$dir/log"

# Enough events for a minute; it is stopped long before.
(cd "$dir" && exec "$bin" demo --events 3000 --rate 50) >>"$dir/demo" 2>&1 &
demo=$!
endpoint=
for _ in {1..300}; do
  endpoint=$(sed -nE 's/.*Pub\/Sub server at ([0-9.]+:[0-9]+).*/\1/p' "$dir/demo")
  [[ -z $endpoint ]] || break
  sleep 0.1
done
if [[ -z $endpoint ]]; then
  echo "bellhop demo does not start:" >&2
  cat "$dir/demo" >&2
  exit 1
fi

# Port 0 is any free one; the log tells which.
cat >"$dir/bellhop.toml" <<TOML
[pubsub]
project = "bellhop-demo"
subscription = "chat-events"
endpoint = "http://$endpoint"
[store]
backend = "memory"
[handler]
kind = "echo"
[server]
listen = "127.0.0.1:0"
[log]
format = "json"
TOML
"$bin" --config "$dir/bellhop.toml" run >"$dir/out" 2>>"$dir/log" &
daemon=$!

python3 - "$dir/log" "$daemon" <<'PYTHON'
import re, sys, time, urllib.request

log, daemon = sys.argv[1], int(sys.argv[2])
deadline = time.monotonic() + 50


def port():
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            found = re.search(r"Listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                return found[1]


def is_over():
    # A zombie still has its pid: the state tells whether it runs.
    with open(f"/proc/{daemon}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"


text = ""
while time.monotonic() < deadline and not is_over():
    at = port()
    if at:
        with urllib.request.urlopen(f"http://127.0.0.1:{at}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        # A settled event was received, claimed, handled and acked, so the series of these are there too.
        if re.search(r'^bellhop_events_finished_total\{.*outcome="done"\} [1-9]', text, re.MULTILINE):
            sys.stdout.write(text)
            sys.exit(0)
    time.sleep(0.2)
with open(log, encoding="utf-8") as lines:
    sys.stderr.write(f"bellhop handled no event:\n{lines.read()}\n{text}")
sys.exit(1)
PYTHON
