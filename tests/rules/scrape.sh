#!/usr/bin/env bash
# Prints what a real bellhop exports. It runs without a database and waits for a Pub/Sub that nobody answers.
#
#   BELLHOP_BIN    the program (target/debug/bellhop)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${BELLHOP_BIN:-$root/target/debug/bellhop}
if [[ ! -x $bin ]]; then
  printf '\nMissing: %s\n  why: the metrics it really exports are compared with rules and dashboard\n  how: cargo build, or set BELLHOP_BIN\n' "$bin" >&2
  exit 1
fi

dir=$(mktemp -d /tmp/bellhop-scrape.XXXXXX)
daemon=
finish() {
  if [[ -n $daemon ]]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  rm -rf "$dir"
}
trap finish EXIT

# Port 1 is nobody's: connections are refused at once. Port 0 is any free one; the log tells which.
cat >"$dir/bellhop.toml" <<'TOML'
[pubsub]
project = "my-project"
subscription = "chat-events"
endpoint = "http://127.0.0.1:1"
[store]
backend = "memory"
[handler]
kind = "echo"
[server]
listen = "127.0.0.1:0"
[log]
format = "json"
TOML

for name in $(compgen -e BELLHOP_ || true) DATABASE_URL PUBSUB_EMULATOR_HOST KUBERNETES_SERVICE_HOST; do unset "$name"; done
"$bin" --config "$dir/bellhop.toml" run >"$dir/out" 2>"$dir/log" &
daemon=$!

python3 - "$dir/log" "$daemon" <<'PYTHON'
import re, sys, time, urllib.request

log, daemon = sys.argv[1], int(sys.argv[2])
deadline = time.monotonic() + 60


def port():
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            found = re.search(r'Listening on 127\.0\.0\.1:(\d+)', line)
            if found:
                return found[1]


def scrape(at):
    with urllib.request.urlopen(f"http://127.0.0.1:{at}/metrics", timeout=10) as answer:
        return answer.read().decode()


while time.monotonic() < deadline:
    # A zombie still has its pid: the state tells whether it runs.
    with open(f"/proc/{daemon}/stat") as stat:
        if stat.read().rpartition(")")[2].split()[0] == "Z":
            break
    at = port()
    if at:
        text = scrape(at)
        # The first probe is over: its result is counted, so this labelled series is there too.
        if "bellhop_pubsub_requests_total{" in text:
            sys.stdout.write(text)
            sys.exit(0)
    time.sleep(0.1)
sys.stderr.write("bellhop shows no metrics:\n" + open(log, encoding="utf-8").read())
sys.exit(1)
PYTHON
