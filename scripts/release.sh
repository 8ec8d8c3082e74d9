#!/bin/sh
# Builds what is released, for amd64 and arm64, in systems of Debian 12 that it makes for it: what is built
# there runs on Debian 12 and 13. Everything goes to $BUILD/release.
#
#   scripts/release.sh packages     .deb and .tar.gz for each architecture, the sources, SBOMs, SHA256SUMS
#   scripts/release.sh image        the image as an OCI layout (CURL=debian: with Debian's libcurl), its SBOMs
#
# The architecture that this machine does not have is cross-compiled; its program is run with qemu. Needs
# root, Debian's archive, and `scripts/deps.sh release`.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
version=$(cat "$root/VERSION")
arches=${ARCHES:-amd64 arm64}
curl=${CURL:-small}
out=$build/release
suite=bookworm
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

: "${SOURCE_DATE_EPOCH:=$(dpkg-parsechangelog -l "$root/packaging/debian/changelog" -S Timestamp)}"
# The tree may belong to another user than root.
revision=$(git -c safe.directory='*' -C "$root" rev-parse HEAD 2>/dev/null || true)
environment="VERSION=$version SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH REVISION=$revision"

libraries="libcurl4-openssl-dev libjansson-dev libyaml-dev zlib1g-dev libdeflate-dev libisal-dev libpcre2-dev libevent-dev
  libssl-dev libmd-dev libcrypt-dev libseccomp-dev libsqlite3-dev libprotobuf-c-dev libnghttp2-dev
  libdw-dev libiberty-dev"
tools="make pkg-config protobuf-c-compiler debhelper dpkg-dev fakeroot lintian ca-certificates autoconf automake
  libtool"

# system_of ARCHITECTURE: prints the directory of the system that builds for it.
system_of() {
  here=$(dpkg --print-architecture)
  if [ "$1" = "$here" ]; then
    # shellcheck disable=SC2086  # lists of packages
    debian_make "$build/roots/$suite-$1" $suite "$1" gcc libc6-dev $libraries $tools
  else
    foreign=
    for library in libc6-dev $libraries; do
      foreign="$foreign $library:$1"
    done
    # shellcheck disable=SC2086
    debian_make "$build/roots/$suite-$1" $suite "$here,$1" "gcc-$(debian_machine "$1")-linux-gnu" \
      qemu-user-static $foreign $tools
  fi
  echo "$build/roots/$suite-$1"
}

# The package of these sources: what else is released for the architecture is made from it.
build_package() {
  arch=$1
  dir=$2
  debian_inside "$dir" sh -c 'apt-get -qq update && apt-get -qq -y upgrade' >"$dir.log" 2>&1
  "$root/scripts/pack-sources.sh" >"$dir.new.tar"
  if ! cmp -s "$dir.new.tar" "$dir.built.tar"; then
    rm -rf "$dir/src" "$dir.built.tar"
    mkdir "$dir/src"
    tar -C "$dir/src" -xf "$dir.new.tar"
    machine=$(debian_machine "$arch")
    debian_inside "$dir" sh -ec "cd /src
      [ $arch = $here ] || export PROFPULL_HELP='qemu-$machine-static build/deb/profpull'
      scripts/deb.sh $arch
      dpkg-deb -x build/profpull_${version}_$arch.deb build/package"
  fi
  # Only now: a build that failed is made again.
  mv "$dir.new.tar" "$dir.built.tar"
  emulator=
  [ "$arch" = "$here" ] || emulator=qemu-$(debian_machine "$arch")-static
  echo "profpull for $arch says:"
  debian_inside "$dir" sh -ec "cd /src
    $emulator build/package/usr/bin/profpull version
    $emulator build/package/usr/bin/profpull check --config packaging/systemd/profpull.yaml"
}

# collect ARCHITECTURE SYSTEM CURL NAME: the content of an image in /src/build/NAME of the system, and its SBOM.
collect() {
  debian_inside "$2" sh -ec "cd /src
    export $environment
    CURL=$3 scripts/image-root.sh build/$4 build/package/usr/bin/profpull $1
    scripts/sbom.sh profpull-$4 $1 <build/$4.packages >build/$4.spdx.json"
}

# A directory with bin/ and share/, as `make install` makes them, and the files of the service.
tarball() {
  name=profpull-$version-linux-$1
  top=$2/src/build/$name
  rm -rf "$top"
  mkdir "$top"
  cp -a "$2/src/build/package/usr/bin" "$2/src/build/package/usr/share" "$top/"
  rm -rf "$top/share/lintian"
  cp -r "$root/packaging/systemd" "$root/README.md" "$root/LICENSE" "$top/"
  tar -C "$2/src/build" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner -cf - "$name" | gzip -9 -n >"$out/$name.tar.gz"
}

sums() {
  (
    cd "$out"
    rm -f SHA256SUMS
    sha256sum -- * >../SHA256SUMS
    mv ../SHA256SUMS .
    ls -l
  )
}

packages() {
  for arch in $arches; do
    dir=$(system_of "$arch")
    build_package "$arch" "$dir"
    collect "$arch" "$dir" debian linux
    cp "$dir/src/build/profpull_${version}_$arch.deb" "$out/"
    cp "$dir/src/build/linux.spdx.json" "$out/profpull-$version-linux-$arch.spdx.json"
    tarball "$arch" "$dir"
  done
  if [ -n "$revision" ]; then
    git -c safe.directory='*' -C "$root" archive --format=tar --prefix="profpull-$version/" HEAD | gzip -9 -n >"$out/profpull-$version.tar.gz"
  fi
}

image() {
  file=$out/profpull-$version-image.tar
  set --
  for arch in $arches; do
    dir=$(system_of "$arch")
    build_package "$arch" "$dir"
    collect "$arch" "$dir" "$curl" image
    cp "$dir/src/build/image.spdx.json" "$out/profpull-$version-image-$arch.spdx.json"
    set -- "$@" "$arch=$dir/src/build/image"
  done
  # shellcheck disable=SC2086  # three assignments
  env $environment "$root/scripts/oci.sh" "$file" "$@"
}

here=$(dpkg --print-architecture)
[ "$#" -gt 0 ] || {
  sed -n '2,10p' "$0" >&2
  exit 2
}
# shellcheck disable=SC2086
debian_needs $arches
mkdir -p "$out"
for part; do
  case $part in
    packages) packages ;;
    image) image ;;
    *)
      echo "$0: packages or image, not $part" >&2
      exit 2
      ;;
  esac
done
sums
