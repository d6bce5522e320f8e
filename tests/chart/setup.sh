#!/usr/bin/env bash
# Makes the Python environment of the chart's tests under target/, and sees to the programs that they start. Safe to run again;
# quick when there is nothing to do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/chart-venv
stamp=$venv/.requirements

if ! command -v python3 >/dev/null; then
  printf '\nMissing: Python 3.10 or newer\n  why: the tests of the chart are written in it\n  how: apt-get install python3 python3-venv\n' >&2
  exit 1
fi
if ! command -v gpg >/dev/null; then
  if [[ $EUID -ne 0 ]] || ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gnupg; } </dev/null >&2; then
    printf '\nMissing: gpg\n  why: the chart is signed with a key made for the test\n  how: apt-get install gnupg\n' >&2
    exit 1
  fi
fi
"$here/registry.sh" >/dev/null
if [[ -f $stamp ]] && cmp -s "$here/requirements.txt" "$stamp"; then
  exit 0
fi
mkdir -p "$root/target"
python3 -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --requirement "$here/requirements.txt"
cp "$here/requirements.txt" "$stamp"
