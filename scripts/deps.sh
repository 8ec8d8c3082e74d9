#!/bin/sh
# Installs with apt what a piece of work needs; does nothing where it is there already.
#
#   scripts/deps.sh build           to build
#   scripts/deps.sh run             and to run the demonstration (make run)
#   scripts/deps.sh test            and to run all tests (make check)
#   scripts/deps.sh package         to build, and to make the Debian package
#   scripts/deps.sh release         and to make releases and images of both architectures, and try them
#   scripts/deps.sh jfr             and a JDK, to compare recordings with its own reader
#   scripts/deps.sh native          and rustc, for the tests with programs in Rust
#   scripts/deps.sh lint            and for the sanitizers, fuzzers, linters, coverage
#
# Works as root or through sudo. Debian 12 and 13, Ubuntu 24.04.
set -eu

build="gcc libc6-dev make pkg-config libcurl4-openssl-dev libjansson-dev libyaml-dev
  zlib1g-dev libdeflate-dev libisal-dev libpcre2-dev libevent-dev libssl-dev
  libmd-dev libcrypt-dev libseccomp-dev libnghttp2-dev libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler
  libdw-dev libiberty-dev"
run="$build golang-go ca-certificates"
test="$run libcmocka-dev openssl g++ elfutils binutils xz-utils curl
  debuginfod libgoogle-perftools-dev libjemalloc-dev"
lint="$test clang clang-format clang-tidy clang-tools cppcheck gcovr valgrind shellcheck
  libclang-rt-dev"

# The JDK of Debian 12; later systems have 21 instead.
jfr="$test openjdk-17-jdk-headless"
if ! apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then
  jfr="$test openjdk-21-jdk-headless"
fi
native="$test rustc"
package="$build debhelper dpkg-dev fakeroot git"
release="$package lintian golang-go mmdebstrap qemu-user-static arch-test iproute2 debian-archive-keyring util-linux"

case "${1:-build}" in
  build) want=$build ;;
  run) want=$run ;;
  test) want=$test ;;
  package) want=$package ;;
  release) want=$release ;;
  lint) want=$lint ;;
  jfr) want=$jfr ;;
  native) want=$native ;;
  *)
    echo "usage: $0 build|run|test|jfr|native|package|release|lint" >&2
    exit 2
    ;;
esac

missing=
for package in $want; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  if [ "$status" != installed ]; then
    # Another Go or rustc, from its own packages or by hand, is as good.
    if [ "$package" = golang-go ] && command -v go >/dev/null 2>&1; then
      continue
    fi
    if [ "$package" = rustc ] && command -v rustc >/dev/null 2>&1; then
      continue
    fi
    missing="$missing $package"
  fi
done
# A test looks at the pages in a browser without a window, where the distribution has one.
browser() {
  case $1 in test | native | lint) ;; *) return ;; esac
  for package in chromium-headless-shell chromium; do
    ! command -v "$package" >/dev/null 2>&1 || return 0
  done
  for package in chromium-headless-shell chromium; do
    if apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [0-9]'; then
      echo "$package"
      return
    fi
  done
}

# The real programs that are scraped are downloaded later and need apt's lists.
lists=$(find /var/lib/apt/lists -name '*Packages*' 2>/dev/null | head -n 1)
if [ -z "$missing" ] && [ -n "$lists" ] && [ -z "$(browser "${1:-build}")" ]; then
  exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "$0: needs root or sudo to install:$missing" >&2
    exit 1
  fi
  as_root=sudo
fi
echo "installing with apt:${missing:- nothing, only reading the package lists}"
$as_root apt-get update -q
missing="$missing $(browser "${1:-build}")"
if [ -n "${missing# }" ]; then
  # shellcheck disable=SC2086  # a list of packages
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
fi
