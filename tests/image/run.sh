#!/usr/bin/env bash
# Builds the image from base images made on this machine, and runs it as its own user. Needs no registry and no Docker daemon,
# but root, a Debian mirror, a Rust toolchain from rustup to lend to the build, and a good quarter of an hour the first time; so
# CI does not run it (there, image.yml builds the real thing). Everything it makes is under target/image; a second run takes the
# bases and the layers from there, and one minute. Remove that folder to start afresh.
#
#   tests/image/run.sh           the whole way
#   tests/image/run.sh binary    only asks what target/release/bellhop (or BELLHOP_BINARY) needs from its base
#
# What it shows: the Dockerfile builds as it is, without the sources it does not copy; a changed source does not build the
# dependencies again; the image runs as 65532, without a shell beside it; it serves, and ends when process 1 gets SIGTERM; the
# binary needs nothing that distroless/cc does not have.
# What it does not show: that it runs on the real distroless image. The base here is made of the same Debian packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/image
image=localhost/bellhop:test

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
command -v buildah >/dev/null || missing+=(buildah)
command -v debootstrap >/dev/null || missing+=(debootstrap debian-archive-keyring)
command -v readelf >/dev/null || missing+=(binutils)
if ((${#missing[@]})); then
  command -v apt-get >/dev/null || fail "install ${missing[*]}"
  apt-get update -qq </dev/null >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
fi
# The toolchain is lent to the build, read-only; crates come from the registry as in any build.
toolchain=${RUSTUP_HOME:-$HOME/.rustup}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
[[ -d $toolchain/toolchains && -x $cargo_home/bin/cargo ]] ||
  fail "the toolchain of this machine goes into the build; install Rust with rustup (https://rustup.rs)"

# A storage of its own, and temporary files (the build's cache of crates among them) beside it.
mkdir -p "$work/tmp" "$work/probe/lower" "$work/probe/upper" "$work/probe/work" "$work/probe/merged"
export BUILDAH_ISOLATION=chroot TMPDIR=$work/tmp CONTAINERS_STORAGE_CONF=$work/storage.conf
# Where overlays can not be mounted each layer is a whole copy: ten times the room, and slower.
export STORAGE_DRIVER=vfs
probe=$work/probe
if mount -t overlay overlay -o "lowerdir=$probe/lower,upperdir=$probe/upper,workdir=$probe/work" "$probe/merged" 2>/dev/null; then
  umount "$probe/merged"
  STORAGE_DRIVER=overlay
fi
rm -rf "$probe"
printf '[storage]\ndriver = "%s"\ngraphroot = "%s"\nrunroot = "%s"\n' "$STORAGE_DRIVER" "$work/storage-$STORAGE_DRIVER" \
  "$work/run-$STORAGE_DRIVER" >"$CONTAINERS_STORAGE_CONF"

# shellcheck source=tests/image/processes.sh
source "$here/processes.sh"
scratch=$(mktemp -d "$work/tmp/run.XXXXXX")
started=()
clean_up() {
  local pid
  for pid in "${started[@]}"; do end_tree "$pid"; done
  buildah rm --all >/dev/null 2>&1 || true
  rm -rf "$scratch" "$work"/tmp/buildah[0-9]*
}
trap clean_up EXIT

# The names in the Dockerfile, so that it is built as it is.
build_image=$(sed -n 's/^ARG BUILD_IMAGE=//p' "$root/Dockerfile")
runtime_image=$(sed -n 's/^ARG RUNTIME_IMAGE=//p' "$root/Dockerfile")
SECONDS=0
"$here/bases.sh" "$build_image" "$runtime_image" "$work"
echo "Bases: ${SECONDS}s"

labels=(VERSION=0.0.0-test REVISION=0123abc CREATED=2026-01-02T03:04:05Z SOURCE=https://git.example/bellhop)
# build FOLDER ARGUMENT...
build() {
  local mounts
  mounts=(-v "$toolchain:/usr/local/rustup:ro" -v "$cargo_home/bin:/usr/local/cargo/bin:ro" -v /etc/ssl/certs:/etc/ssl/certs:ro)
  [[ ! -f $cargo_home/config.toml ]] || mounts+=(-v "$cargo_home/config.toml:/usr/local/cargo/config.toml:ro")
  buildah bud --pull-never --layers "${mounts[@]}" "${@:2}" "$1"
}
SECONDS=0
build "$root" --target build --tag "$image-build"
# Not the last stage of another run: buildah takes its layers from there even where an argument has changed.
buildah rmi "$image" >/dev/null 2>&1 || true
mapfile -t arguments < <(printf -- '--build-arg\n%s\n' "${labels[@]}")
build "$root" --tag "$image" "${arguments[@]}"
echo "Image: ${SECONDS}s, $(buildah images --format '{{.Size}}' "$image")"

# A source that does not compile, and that is older than everything: the build must fail on that very line, at once.
SECONDS=0
mkdir "$scratch/changed"
(cd "$root" && sed -n 's/^!//p' .dockerignore | xargs cp --archive --parents --target-directory "$scratch/changed" Dockerfile .dockerignore)
echo 'compile_error!("a changed source");' >>"$scratch/changed/src/lib.rs"
touch --date=2001-01-01 "$scratch/changed/src/lib.rs"
if build "$scratch/changed" --target build >"$scratch/log" 2>&1; then fail "a changed source was not built"; fi
grep -q 'a changed source' "$scratch/log" || { cat "$scratch/log" >&2; fail "the build failed on something else"; }
compiled=$(grep -E '^ *Compiling ' "$scratch/log" | grep -v ' bellhop v' || true)
[[ -z $compiled ]] || fail "a changed source builds dependencies again: ${compiled//$'\n'/ }"
echo "A changed source reaches the compiler after ${SECONDS}s, and no dependency does"

buildah inspect --type image "$image" | python3 "$here/configuration.py" "$runtime_image" "${labels[@]}" >"$scratch/command"
mapfile -t entrypoint <"$scratch/command"

container=$(buildah from --pull-never "$image")
files=$(buildah mount "$container")
only_basic_libraries "$files${entrypoint[0]}"
[[ $(stat -c %a:%u "$files${entrypoint[0]}") == 755:0 ]] || fail "the binary must be root's, and executable for all"
[[ ! -e $files/bin/sh && ! -e $files/usr/bin/sh ]] || fail "the base has a shell, so this run says nothing about one without"

# As the image says: its user, folder, environment and entry point; buildah leaves only the command to us.
settings=()
in_image() {
  buildah run "${settings[@]}" "$container" -- "${entrypoint[@]}" "$@"
}
in_image --version
if in_image run 2>"$scratch/refused"; then fail "without a configuration it must refuse to run"; else status=$?; fi
((status == 2)) || { cat "$scratch/refused" >&2; fail "a wrong configuration must exit with 2, not $status"; }
grep -q 'pubsub.subscription: is missing' "$scratch/refused" || { cat "$scratch/refused" >&2; fail "it must say what is missing"; }

# shellcheck source=tests/servers/ports.sh
source "$root/tests/servers/ports.sh"
settings=(--env "BELLHOP__SERVER__LISTEN=127.0.0.1:$(free_port)")
said=$(in_image demo --once --output json)
python3 -c 'import json, sys; told = json.loads(sys.argv[1]); sys.exit(told["lost"] != 0 or told["handled"] + told["quarantined"] != 100)' "$said" ||
  fail "the demonstration lost something: $said"
echo "$said"

# A demonstration that stays is the Pub/Sub server of what follows.
in_image demo --events 1 >"$scratch/demo" &
demo=$!
started+=("$demo")
within 30 grep -q 'All is published' "$scratch/demo" || fail "the demonstration does not start"
stage=$(sed -n 's/^bellhop takes events from \(.*\) on an embedded Pub\/Sub server at \(.*\)$/\1 \2/p' "$scratch/demo")
demo_pid=$(descendant "$demo" bellhop) || fail "the demonstration has no process"
grep -qE $'^Uid:\t65532\t65532\t65532\t65532$' "/proc/$demo_pid/status" || fail "it runs as $(grep ^Uid: "/proc/$demo_pid/status")"

# Now as a runtime starts it: as process 1 of a namespace of its own, where a signal without a handler does nothing.
variables=(PUBSUB_EMULATOR_HOST="${stage#* }" BELLHOP__PUBSUB__SUBSCRIPTION="${stage% *}" BELLHOP__STORE__BACKEND=memory
  BELLHOP__HANDLER__KIND=echo BELLHOP__SERVER__LISTEN="127.0.0.1:$(free_port)")
# shellcheck disable=SC2016  # for the inner shell
env --ignore-environment PATH="$PATH" "${variables[@]}" unshare --mount --pid --fork sh -euc \
  'mount -t proc proc "$1/proc"; files=$1; shift; exec chroot --userspec=65532:65532 --groups=65532 "$files" "$@"' \
  sh "$files" "${entrypoint[@]}" run 2>"$scratch/run" &
run=$!
started+=("$run")
mapfile -t settings < <(printf -- '--env\n%s\n' "${variables[@]}")
within 30 eval 'in_image healthcheck >"$scratch/health" 2>&1' || { cat "$scratch/run" "$scratch/health" >&2; fail "it does not become ready"; }
pid=$(descendant "$run" bellhop) || fail "it has no process"
grep -qE $'^NSpid:.*\t1$' "/proc/$pid/status" || fail "it is not process 1: $(grep ^NSpid: "/proc/$pid/status")"
kill -TERM "$pid"
within 20 ended "$pid" || fail "process 1 does not end at SIGTERM"
wait "$run" && status=0 || status=$?
((status == 0)) || { cat "$scratch/run" >&2; fail "SIGTERM must end it with 0, not $status"; }
kill -TERM "$demo_pid"
within 20 ended "$demo_pid" || fail "the demonstration does not end at SIGTERM"
wait "$demo" && status=0 || status=$?
((status == 0)) || fail "SIGTERM must end the demonstration with 0, not $status"

# What no image with a name stands on; not after a failure, whose layers the next run can use.
buildah rm --all >/dev/null
buildah rmi --prune >/dev/null
echo "The image builds, runs as 65532, and process 1 ends at SIGTERM"
