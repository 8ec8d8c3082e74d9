#!/bin/sh
# Tries the image in $BUILD/release (make image): its layout and content, and a run of each architecture's
# program, which scrapes Debian's prometheus-node-exporter. Needs root, Go, and qemu-user-static.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"
debian_needs amd64 arm64
PROFPULL_IMAGE=$build/release/profpull-$(cat "$root/VERSION")-image.tar
if [ ! -e "$PROFPULL_IMAGE" ]; then
  echo "$0: no $PROFPULL_IMAGE: run make image" >&2
  exit 1
fi
BUILD=$build "$root/scripts/test-programs.sh" prometheus-node-exporter
PROFPULL_EXPORTER=$(find "$build/programs" -type f -name prometheus-node-exporter | head -n 1)
# The limit of an image with a libcurl of our own; 35000000 is that of one with Debian's.
PROFPULL_IMAGE_MAX=${PROFPULL_IMAGE_MAX:-12000000}
export PROFPULL_IMAGE PROFPULL_EXPORTER PROFPULL_IMAGE_MAX
cd "$root/tests/image"
GOTOOLCHAIN=local GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0 "${GO:-go}" test -count=1 -v ./...
