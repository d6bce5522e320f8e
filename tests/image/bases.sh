#!/usr/bin/env bash
# Makes the Dockerfile's two bases from Debian's packages, under the names that the Dockerfile gives them. run.sh calls it, with
# the storage it works in; what is there already stays.
#
#   tests/image/bases.sh BUILD_IMAGE RUNTIME_IMAGE FOLDER
set -euo pipefail
build_image=$1
runtime_image=$2
folder=$3
suite=bookworm
# Of distroless' own user.
home=home/nonroot

# What distroless/cc is made of; no shell, no package manager among it.
packages=(base-files netbase tzdata libc6 libgcc-s1 libstdc++6 libgomp1 libssl3)

exists() {
  buildah inspect --type image "$1" >/dev/null 2>&1
}

# fill CONTAINER FOLDER: as it is, owners included; `buildah copy` would give all of it to root.
fill() {
  local files
  files=$(buildah mount "$1")
  cp --archive "$2/." "$files/"
  buildah umount "$1" >/dev/null
}

# As rust:slim is: a C compiler and certificates beside Rust, and Rust is lent by run.sh.
if ! exists "$build_image"; then
  rootfs=$folder/rootfs
  if [[ ! -e $rootfs.complete ]]; then
    rm -rf "$rootfs"
    debootstrap --variant=minbase "$suite" "$rootfs"
    touch "$rootfs.complete"
  fi
  build=$(buildah from scratch)
  fill "$build" "$rootfs"
  buildah run "$build" -- sh -euc 'apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev ca-certificates && apt-get clean' \
    >"$folder/apt.log"
  buildah config --env PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env CARGO_HOME=/usr/local/cargo --env RUSTUP_HOME=/usr/local/rustup "$build"
  buildah commit --quiet --rm "$build" "$build_image" >/dev/null
  rm -rf "$rootfs" "$rootfs.complete"
fi

if ! exists "$runtime_image"; then
  source=$(buildah from --pull-never "$build_image")
  buildah run "$source" -- sh -euc 'apt-get update -qq; mkdir /packages; cd /packages; apt-get download -qq -o APT::Sandbox::User=root "$@"; for one in *.deb; do dpkg-deb --extract "$one" /runtime; done' \
    sh "${packages[@]}" >"$folder/apt.log"
  files=$(buildah mount "$source")
  runtime=$files/runtime
  install -d --mode=1777 "$runtime/tmp"
  install -d "$runtime/etc/ssl/certs"
  install -d --owner=65532 --group=65532 --mode=700 "$runtime/$home"
  cp "$files/etc/ssl/certs/ca-certificates.crt" "$runtime/etc/ssl/certs/"
  printf '%s\n' root:x:0:0:root:/root:/sbin/nologin "nonroot:x:65532:65532:nonroot:/$home:/sbin/nologin" >"$runtime/etc/passwd"
  printf '%s\n' root:x:0: nonroot:x:65532: >"$runtime/etc/group"

  base=$(buildah from scratch)
  fill "$base" "$runtime"
  buildah config --user 65532 --workingdir "/$home" \
    --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt "$base"
  buildah commit --quiet --rm "$base" "$runtime_image" >/dev/null
  buildah rm "$source" >/dev/null
fi
