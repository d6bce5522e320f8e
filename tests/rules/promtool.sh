#!/usr/bin/env bash
# Prints where promtool is. Where it is missing, Debian's package is unpacked under target/, not installed.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
kept=$root/target/prometheus/usr/bin/promtool

if command -v promtool; then exit; fi
if [[ -x $kept ]]; then echo "$kept" && exit; fi

fetch() {
  local dir
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
  dir=$(mktemp -d /tmp/bellhop-promtool.XXXXXX)
  chmod 755 "$dir"
  # The lists may be missing or older than the mirror.
  if (cd "$dir" && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; } }) >&2 2>"$dir/log"; then
    mkdir -p "$root/target/prometheus.new"
    dpkg -x "$dir"/prometheus_*.deb "$root/target/prometheus.new" && rm -rf "$root/target/prometheus" &&
      mv "$root/target/prometheus.new" "$root/target/prometheus"
  else
    cat "$dir/log" >&2
  fi
  rm -rf "$dir"
  [[ -x $kept ]]
}

if ! fetch; then
  printf '\nMissing: promtool\n  why: alerts and dashboards are checked with it\n  how: apt-get install prometheus, or https://prometheus.io/download\n' >&2
  exit 1
fi
echo "$kept"
