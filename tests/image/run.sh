#!/usr/bin/env bash
# Builds the image from base images made on this machine, and runs it as its own user. Needs no registry and no Docker daemon,
# but root, a Debian mirror, and a good quarter of an hour; so CI does not run it (there, image.yml builds the real thing).
#
#   tests/image/run.sh           the whole way
#   tests/image/run.sh binary    only asks what target/release/bellhop (or BELLHOP_BINARY) needs from its base
#
# What it shows: the Dockerfile builds, with the lock file and without the sources it does not copy; the image runs as 65532
# without a shell, and answers its command line; the binary needs nothing that distroless/cc does not have.
# What it does not show: that it runs on the real distroless image.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/image
suite=bookworm
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs

fail() {
  echo "image: $*" >&2
  exit 1
}

# distroless/cc has the C library (with its loader), libm, libgcc_s and libstdc++; a binary that needs more would not start.
only_basic_libraries() {
  local needed extra
  command -v readelf >/dev/null || fail "readelf is missing (apt-get install binutils)"
  needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  extra=$(grep -vE '^(libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux[a-z0-9-]*\.so\.[0-9]+)$' <<<"$needed" || true)
  [[ -n $needed ]] || fail "$1 is not a dynamic program"
  [[ -z $extra ]] || fail "$1 needs more than libc, libm and libgcc_s: ${extra//$'\n'/ }"
  echo "Needs only ${needed//$'\n'/, }"
}

if [[ ${1:-} == binary ]]; then
  only_basic_libraries "${BELLHOP_BINARY:-$root/target/release/bellhop}"
  exit 0
fi

[[ $EUID -eq 0 ]] || fail "debootstrap needs root"
missing=()
for tool in buildah debootstrap; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if ((${#missing[@]})); then
  command -v apt-get >/dev/null || fail "install ${missing[*]}"
  apt-get update -qq </dev/null >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
fi
command -v cargo >/dev/null || fail "the toolchain of this machine goes into the build image; install Rust (https://rustup.rs)"

# The names in the Dockerfile, so that it is built as it is.
build_image=$(sed -n 's/^ARG BUILD_IMAGE=//p' "$root/Dockerfile")
runtime_image=$(sed -n 's/^ARG RUNTIME_IMAGE=//p' "$root/Dockerfile")

if ! buildah inspect --type image "$runtime_image" >/dev/null 2>&1; then
  mkdir -p "$work"
  if [[ ! -e $work/rootfs/.complete ]]; then
    rm -rf "$work/rootfs"
    debootstrap --variant=minbase "$suite" "$work/rootfs"
    touch "$work/rootfs/.complete"
  fi
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$work/rootfs" / >/dev/null
  buildah commit --quiet --rm "$container" "$runtime_image" >/dev/null
fi
if ! buildah inspect --type image "$build_image" >/dev/null 2>&1; then
  container=$(buildah from --pull-never "$runtime_image")
  buildah run "$container" -- sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev ca-certificates'
  buildah config --env PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env CARGO_HOME=/usr/local/cargo --env RUSTUP_HOME=/usr/local/rustup "$container"
  buildah commit --quiet --rm "$container" "$build_image" >/dev/null
fi

# The toolchain is lent to the build, read-only; crates come from the registry as in any build.
cargo_home=${CARGO_HOME:-$HOME/.cargo}
mounts=(-v "${RUSTUP_HOME:-$HOME/.rustup}:/usr/local/rustup:ro" -v "$cargo_home/bin:/usr/local/cargo/bin:ro" -v /etc/ssl/certs:/etc/ssl/certs:ro)
[[ ! -f $cargo_home/config.toml ]] || mounts+=(-v "$cargo_home/config.toml:/usr/local/cargo/config.toml:ro")
image=localhost/bellhop:test
buildah bud --pull-never --layers "${mounts[@]}" --build-arg VERSION=0.0.0-test --build-arg REVISION=test --tag "$image" "$root"

buildah inspect --type image "$image" | python3 -c '
import json, sys

config = json.load(sys.stdin)["OCIv1"]["config"]
wanted = {"User": "65532:65532", "Entrypoint": ["/usr/local/bin/bellhop"], "Cmd": ["run"]}
wrong = {key: config.get(key) for key, value in wanted.items() if config.get(key) != value}
if config.get("Labels", {}).get("org.opencontainers.image.version") != "0.0.0-test":
    wrong["Labels"] = config.get("Labels")
if wrong:
    sys.exit(f"image: its configuration is wrong: {wrong}")
'

container=$(buildah from --pull-never "$image")
trap 'buildah rm "$container" >/dev/null' EXIT
mounted=$(buildah mount "$container")
only_basic_libraries "$mounted/usr/local/bin/bellhop"
[[ $(stat -c %a:%u "$mounted/usr/local/bin/bellhop") == 755:0 ]] || fail "the binary must be root's, and executable for all"

as_user() {
  buildah run --user 65532:65532 "$container" -- "$@"
}
as_user /usr/local/bin/bellhop --version
if as_user /usr/local/bin/bellhop run; then fail "without a configuration it must refuse to run"; else status=$?; fi
((status == 2)) || fail "a wrong configuration must exit with 2, not $status"
as_user /usr/local/bin/bellhop demo --once --output json | tail -n 1
echo "The image builds, and runs as 65532"
