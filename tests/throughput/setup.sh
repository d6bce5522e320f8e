#!/usr/bin/env bash
# Installs what the two workers in this folder need beside Google's clients, pinned, under target/throughput.
# Does nothing when it is there already. Needs python3 with venv, node and npm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
into=$target/throughput

"$here/../integration/clients/setup.sh"
# The copies are written last: they say that the rest is there.
if ! cmp -s "$here/requirements.txt" "$into/python/requirements.txt"; then
  rm -rf "$into/python"
  "$target/clients/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$into/python" \
    --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$into/python/"
fi
if ! cmp -s "$here/package-lock.json" "$into/node/stamp.json"; then
  rm -rf "$into/node"
  mkdir -p "$into/node"
  cp "$here/package.json" "$here/package-lock.json" "$into/node/"
  (cd "$into/node" && npm ci --silent --no-audit --no-fund --ignore-scripts)
  cp "$here/package-lock.json" "$into/node/stamp.json"
fi
