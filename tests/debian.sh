#!/usr/bin/env bash
# Prints where a program is. Where it is missing, its Debian package is unpacked under target/, not installed: installed, some
# would start a service.
#
#   tests/debian.sh PROGRAM PACKAGE WHY HOW
set -euo pipefail
program=$1 package=$2 why=$3 how=$4
root=$(cd "$(dirname "$0")/.." && pwd)
unpacked=$root/target/$package
kept=$unpacked/usr/bin/$program

if command -v "$program"; then exit; fi
if [[ -x $kept ]]; then echo "$kept" && exit; fi

fetch() {
  local dir
  command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
  dir=$(mktemp -d "/tmp/bellhop-$package.XXXXXX")
  chmod 755 "$dir"
  # The lists may be missing or older than the mirror.
  if (cd "$dir" && { apt-get download -qq "$package" || { apt-get update -qq && apt-get download -qq "$package"; } }) >&2 2>"$dir/log"; then
    mkdir -p "$unpacked.new"
    dpkg -x "$dir/$package"_*.deb "$unpacked.new" && rm -rf "$unpacked" && mv "$unpacked.new" "$unpacked"
  else
    cat "$dir/log" >&2
  fi
  rm -rf "$dir"
  [[ -x $kept ]]
}

if ! fetch; then
  printf '\nMissing: %s\n  why: %s\n  how: %s\n' "$program" "$why" "$how" >&2
  exit 1
fi
echo "$kept"
