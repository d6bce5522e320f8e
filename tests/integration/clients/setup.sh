#!/bin/sh
# Installs Google's Pub/Sub clients for Python and Node, pinned, under target/clients, for tests/integration/pubsub_server.
# Does nothing when they are there already. Needs python3 with venv, node and npm.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
into=${CARGO_TARGET_DIR:-$root/target}/clients

for tool in python3 node npm; do
    command -v "$tool" >/dev/null || { echo "setup.sh: $tool is missing" >&2; exit 1; }
done

# The stamp holds what was installed; it is written last.
fresh() { [ -f "$2" ] && cmp -s "$1" "$2"; }

mkdir -p "$into"
if ! fresh "$here/requirements.txt" "$into/python.stamp"; then
    rm -rf "$into/python" "$into/python.stamp"
    python3 -m venv "$into/python"
    "$into/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$into/python.stamp"
fi
if ! fresh "$here/pubsub_node/package-lock.json" "$into/node.stamp"; then
    rm -rf "$into/node" "$into/node.stamp"
    mkdir -p "$into/node"
    cp "$here/pubsub_node/package.json" "$here/pubsub_node/package-lock.json" "$into/node/"
    (cd "$into/node" && npm ci --silent --no-audit --no-fund --ignore-scripts)
    cp "$here/pubsub_node/package-lock.json" "$into/node.stamp"
fi
