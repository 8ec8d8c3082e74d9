#!/bin/sh
# Makes real programs available to the tests: downloads Debian's packages and unpacks them below
# $BUILD/programs. Nothing is installed or started, root is not needed. What is there already stays.
#
#   BUILD=build scripts/test-programs.sh [PACKAGE...]
#
# Without arguments: prometheus, prometheus-node-exporter and etcd-server, each with pprof endpoints, and
# kubernetes-client, whose kubectl runs our program as its plugin.
set -eu

build=${BUILD:-build}
dir=$build/programs
[ "$#" -gt 0 ] || set -- prometheus prometheus-node-exporter etcd-server kubernetes-client

# The name of a package's program.
binary() {
  case "$1" in
    etcd-server) echo etcd ;;
    kubernetes-client) echo kubectl ;;
    *) echo "$1" ;;
  esac
}

have() {
  [ -n "$(find "$dir/$1" -type f -perm -u+x -name "$(binary "$1")" 2>/dev/null | head -n 1)" ]
}

# unpack PACKAGE DIRECTORY: its files in DIRECTORY/root.
unpack() {
  # apt-get download works as any user, but only in the current directory.
  if ! (cd "$2" && apt-get download -q "$1") >"$2/log" 2>&1; then
    cat "$2/log" >&2
    echo "$0: apt-get could not download $1." >&2
    echo "Without package lists it knows no package: run \`apt-get update\` as root first." >&2
    rm -rf "$2"
    return 1
  fi
  dpkg -x "$2"/*.deb "$2/root"
  rm -f "$2"/*.deb
}

fetch() {
  work=$dir/.work-$1-$$
  rm -rf "$work"
  mkdir -p "$work/root"
  unpack "$1" "$work" || return 1
  # From Debian 13 on, kubernetes-client has no files of its own, and depends on this package.
  if [ "$1" = kubernetes-client ] && [ ! -e "$work/root/usr/bin/kubectl" ]; then
    unpack kubectl "$work" || return 1
  fi
  # Only the programs: init scripts and the like have the same names.
  mkdir "$work/keep"
  mv "$work/root/usr" "$work/keep/"
  rm -rf "$work/keep/usr/share" "$work/keep/usr/lib"
  rm -rf "${dir:?}/$1"
  mv "$work/keep" "$dir/$1"
  rm -rf "$work"
}

if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg >/dev/null 2>&1; then
  echo "$0: needs apt-get and dpkg (Debian or Ubuntu)" >&2
  exit 1
fi
mkdir -p "$dir"
for package in "$@"; do
  have "$package" && continue
  echo "fetching $package into $dir"
  fetch "$package"
  if ! have "$package"; then
    echo "$0: $package holds no program named $(binary "$package")" >&2
    exit 1
  fi
done
