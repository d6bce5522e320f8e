#!/usr/bin/env bash
# Prints where kubectl is. Where it is missing, Debian's package is unpacked under target/, not installed.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/target/kubernetes-client/usr/bin/kubectl

if command -v kubectl; then exit; fi
if [[ -x $kept ]]; then echo "$kept" && exit; fi

fetch() {
  local dir
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
  dir=$(mktemp -d /tmp/bellhop-kubectl.XXXXXX)
  chmod 755 "$dir"
  # The lists may be missing or older than the mirror.
  if (cd "$dir" && { apt-get download -qq kubernetes-client || { apt-get update -qq && apt-get download -qq kubernetes-client; } }) >&2 2>"$dir/log"; then
    mkdir -p "$root/target/kubernetes-client.new"
    dpkg -x "$dir"/kubernetes-client_*.deb "$root/target/kubernetes-client.new" && rm -rf "$root/target/kubernetes-client" &&
      mv "$root/target/kubernetes-client.new" "$root/target/kubernetes-client"
  else
    cat "$dir/log" >&2
  fi
  rm -rf "$dir"
  [[ -x $kept ]]
}

if ! fetch; then
  printf '\nMissing: kubectl\n  why: what the CronJobs of floors run is tried with it\n  how: apt-get install kubernetes-client, or https://kubernetes.io/docs/tasks/tools/\n' >&2
  exit 1
fi
echo "$kept"
