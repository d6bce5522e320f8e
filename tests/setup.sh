#!/usr/bin/env bash
# Makes sure that everything the tests need is on this machine. Safe to run again; quick when there is nothing to do.
# What it may install itself (root on a Debian-like machine), it installs; what it may not, it asks for. It never skips.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
missing=0

# ask WHAT WHY HOW
ask() {
  printf '\nMissing: %s\n  why: %s\n  how: %s\n' "$1" "$2" "$3" >&2
  missing=1
}

# Installs Debian packages if we are allowed to.
install_packages() {
  command -v apt-get >/dev/null || return 1
  local apt=(apt-get)
  if [[ $EUID -ne 0 ]]; then
    sudo -n true 2>/dev/null || return 1
    apt=(sudo -n apt-get)
  fi
  echo "Installing: $*" >&2
  export DEBIAN_FRONTEND=noninteractive
  "${apt[@]}" update -qq </dev/null >&2
  "${apt[@]}" install -y -qq --no-install-recommends "$@" </dev/null >&2
}

if ! command -v cargo >/dev/null; then
  ask "Rust" "bellhop is built with it" "https://rustup.rs; the minimum version is rust-version in Cargo.toml"
fi

# aws-lc-rs and SQLite are C code.
if ! command -v cc >/dev/null; then
  install_packages build-essential ||
    ask "a C compiler" "the TLS and SQLite libraries are C code" "apt-get install build-essential"
fi

if ! "$here/servers/postgres.sh" find >/dev/null 2>&1; then
  install_packages postgresql || true
  "$here/servers/postgres.sh" find >/dev/null 2>&1 ||
    ask "PostgreSQL server programs (initdb, postgres)" "the claim store is tested against a real server" \
      "apt-get install postgresql, or set BELLHOP_TEST_POSTGRES_BIN to the directory that holds them"
fi

if ! command -v java >/dev/null; then
  install_packages openjdk-17-jre-headless ||
    ask "Java 17 or newer" "Google's Pub/Sub emulator runs on it" "apt-get install openjdk-17-jre-headless"
fi

if ! "$here/servers/emulator.sh" find >/dev/null; then
  ask "Google's Pub/Sub emulator" "the suite runs against it, besides the embedded server" \
    "install the Google Cloud CLI, then gcloud components install pubsub-emulator (or apt-get install google-cloud-cli-pubsub-emulator); elsewhere set PUBSUB_EMULATOR_JAR to cloud-pubsub-emulator-*-all.jar"
fi

# need TOOL PACKAGE
need() {
  command -v "$1" >/dev/null && return
  install_packages "$2" ||
    ask "$1" "the house tests, the example handlers or Google's client libraries need it" "apt-get install $2"
}
need git git
need python3 python3
need node nodejs
need npm npm
# Debian's python3 comes without what makes virtual environments.
if command -v python3 >/dev/null && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  install_packages python3-venv ||
    ask "Python's venv module" "Google's Python client is installed into a folder of this checkout" \
      "apt-get install python3-venv"
fi

if ((missing)); then
  printf '\nThe tests need what is listed above. Install it and run make test again.\n' >&2
  exit 1
fi

# Google's own client libraries, into a folder of this checkout.
if [[ -x $here/integration/clients/setup.sh ]]; then
  "$here/integration/clients/setup.sh"
fi
