#!/bin/sh
# Tries the Debian packages in new systems: Debian 12 and 13, amd64 and arm64 (with qemu). In each the
# package installs, the unit's sandbox is scored, the service's command scrapes Debian's
# prometheus-node-exporter into its store, and purging the package leaves nothing.
#
#   scripts/deb-check.sh [RELEASE/ARCHITECTURE...]     bookworm/amd64 bookworm/arm64 trixie/amd64 trixie/arm64
#
# Takes the packages from $BUILD/release, where `make release` puts them.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
version=$(cat "$root/VERSION")
[ "$#" -gt 0 ] || set -- bookworm/amd64 bookworm/arm64 trixie/amd64 trixie/arm64
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

passed=0
failed=0
for system; do
  release=${system%/*}
  arch=${system#*/}
  debian_needs "$arch"
  deb=$build/release/profpull_${version}_$arch.deb
  if [ ! -e "$deb" ]; then
    echo "$0: no $deb: run make release" >&2
    exit 1
  fi
  echo "== $system"
  dir=$build/roots/try-$release-$arch
  rm -rf --one-file-system "$dir" "$dir.made"
  debian_make "$dir" "$release" "$arch" ca-certificates adduser systemd curl prometheus-node-exporter
  install -m 755 "$root/scripts/deb-try.sh" "$dir/root/try"
  cp "$deb" "$dir/root/profpull.deb"
  # Installing needs the archive, running does not.
  if debian_inside "$dir" /root/try install && DEBIAN_OFFLINE=1 debian_inside "$dir" /root/try run &&
    debian_inside "$dir" /root/try remove; then
    passed=$((passed + 1))
    rm -rf --one-file-system "$dir" "$dir.made"
  else
    failed=$((failed + 1))
    echo "$system failed; its system is in $dir" >&2
  fi
done
echo "deb-check: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
