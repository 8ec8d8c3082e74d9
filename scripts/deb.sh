#!/bin/sh
# Builds the Debian package of this tree for one architecture, from what git knows of it if it is a
# checkout (changes that are not committed included), and shows what lintian says.
#
#   scripts/deb.sh            for this machine
#   scripts/deb.sh arm64      with the cross compiler and the libraries of that architecture
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-build}
here=$(dpkg --print-architecture)
arch=${1:-$here}
version=$(cat "$root/VERSION")
work=$build/deb-$arch
tree=$work/profpull-$version

# git lists the sources of a checkout.
[ -e "$root/.git" ] && lister=git || lister=
for tool in dpkg-buildpackage dh fakeroot $lister; do
  command -v "$tool" >/dev/null 2>&1 || {
    echo "$0: needs $tool: run scripts/deps.sh package" >&2
    exit 1
  }
done
rm -rf "$work"
mkdir -p "$tree"
work=$(cd "$work" && pwd)
tree=$work/profpull-$version
"$root/scripts/pack-sources.sh" | tar -C "$tree" -xf -
cp -r "$tree/packaging/debian" "$tree/debian"
cp "$tree/packaging/systemd/profpull.service" "$tree/debian/profpull.service"
cp "$tree/packaging/systemd/profpull.default" "$tree/debian/profpull.default"

if [ "$arch" != "$here" ]; then
  # Manual page and completions come from the program: one for this machine writes them.
  : "${PROFPULL_HELP:=$root/build/profpull}"
  export PROFPULL_HELP
fi
# Without the checks of build dependencies, which scripts/deps.sh installs: a Go or compiler from
# elsewhere is as good.
echo "building the package profpull $version for $arch, with optimised code and debug symbols; the log is $work/log"
(cd "$tree" && dpkg-buildpackage -b -us -uc -d --host-arch "$arch" >"$work/log" 2>&1) || {
  tail -n 40 "$work/log"
  exit 1
}
deb=$work/profpull_${version}_$arch.deb
if command -v lintian >/dev/null 2>&1; then
  echo "checking it with lintian"
  lintian --fail-on error,warning "$work/profpull_${version}_$arch.changes"
else
  echo "lintian is not installed: the package is not checked"
fi
cp "$deb" "$build/"
# apt takes a name without a leading ./ or / for that of a package in its archive.
case $build in /*) from=$build ;; *) from=./$build ;; esac
echo "$build/$(basename "$deb"): install it with sudo apt-get install $from/$(basename "$deb")"
