#!/usr/bin/env bash
# Tests the chart: sets up, then runs pytest with the arguments given. BELLHOP_BIN names the daemon (target/debug/bellhop).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
"$here/setup.sh"
cd "$here"
export BELLHOP_BIN=${BELLHOP_BIN:-$root/target/debug/bellhop}
export PYTHONDONTWRITEBYTECODE=1
exec "$root/target/chart-venv/bin/python" -m pytest -p no:cacheprovider --numprocesses auto "$@"
