#!/usr/bin/env bash
# Prints where an OCI registry is. Where it is missing, Debian's package is unpacked under target/, not installed: installed, it
# would start a service.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/target/docker-registry/usr/bin/docker-registry

if command -v docker-registry; then exit; fi
if [[ -x $kept ]]; then echo "$kept" && exit; fi

fetch() {
  local dir
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
  dir=$(mktemp -d /tmp/bellhop-registry.XXXXXX)
  chmod 755 "$dir"
  # The lists may be missing or older than the mirror.
  if (cd "$dir" && { apt-get download -qq docker-registry || { apt-get update -qq && apt-get download -qq docker-registry; } }) >&2 2>"$dir/log"; then
    mkdir -p "$root/target/docker-registry.new"
    dpkg -x "$dir"/docker-registry_*.deb "$root/target/docker-registry.new" && rm -rf "$root/target/docker-registry" &&
      mv "$root/target/docker-registry.new" "$root/target/docker-registry"
  else
    cat "$dir/log" >&2
  fi
  rm -rf "$dir"
  [[ -x $kept ]]
}

if ! fetch; then
  printf '\nMissing: docker-registry\n  why: the chart is pushed to an OCI registry and pulled back\n  how: apt-get install docker-registry\n' >&2
  exit 1
fi
echo "$kept"
