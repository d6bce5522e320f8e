#!/usr/bin/env bash
# Makes the Python environment of the chart's tests under target/. Safe to run again; quick when there is nothing to do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/chart-venv
stamp=$venv/.requirements

if ! command -v python3 >/dev/null; then
  printf '\nMissing: Python 3.10 or newer\n  why: the tests of the chart are written in it\n  how: apt-get install python3 python3-venv\n' >&2
  exit 1
fi
if [[ -f $stamp ]] && cmp -s "$here/requirements.txt" "$stamp"; then
  exit 0
fi
mkdir -p "$root/target"
python3 -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$here/requirements.txt"
cp "$here/requirements.txt" "$stamp"
