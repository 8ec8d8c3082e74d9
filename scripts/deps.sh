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
# Several are given at once: scripts/deps.sh test lint.
#
# Works as root or through sudo. Debian 12 and 13, Ubuntu 24.04.
set -eu

build="gcc libc6-dev make pkg-config libcurl4-openssl-dev libjansson-dev libyaml-dev
  zlib1g-dev libdeflate-dev libisal-dev libpcre2-dev libevent-dev libssl-dev
  libmd-dev libcrypt-dev libseccomp-dev libnghttp2-dev libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler
  libdw-dev libiberty-dev"
run="$build golang-go ca-certificates"
programs="$run libcmocka-dev openssl g++ elfutils binutils xz-utils curl
  debuginfod libgoogle-perftools-dev libjemalloc-dev"
test="$programs BROWSER"
lint="$test clang clang-format clang-tidy clang-tools cppcheck gcovr valgrind shellcheck
  libclang-rt-dev"

jfr="$programs JDK"
native="$test rustc"
package="$build debhelper dpkg-dev fakeroot git"
release="$package lintian golang-go mmdebstrap qemu-user-static arch-test iproute2 debian-archive-keyring util-linux"

want=
for work in "${@:-build}"; do
  case $work in
    build) want="$want $build" ;;
    run) want="$want $run" ;;
    test) want="$want $test" ;;
    package) want="$want $package" ;;
    release) want="$want $release" ;;
    lint) want="$want $lint" ;;
    jfr) want="$want $jfr" ;;
    native) want="$want $native" ;;
    *)
      echo "$0: no work \"$work\"; usage: $0 [build|run|test|jfr|native|package|release|lint]..." >&2
      exit 2
      ;;
  esac
done

as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo

can_install() {
  [ -z "$as_root" ] || command -v sudo >/dev/null 2>&1
}

# update: reads apt's package lists, once.
update() {
  [ -z "${updated:-}" ] || return 0
  echo "reading apt's package lists"
  $as_root apt-get update -q
  updated=yes
}

has_lists() {
  [ -n "$(find /var/lib/apt/lists -name '*Packages*' 2>/dev/null | head -n 1)" ]
}

# The real programs that are scraped are downloaded later and need the lists, and the names below depend on them.
if ! has_lists && can_install; then
  update
fi

# has PACKAGE: the distribution has it.
has() {
  apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'
}

# package_of NAME: the package to install for a name of the lists above, or nothing.
package_of() {
  case $1 in
    JDK) # of Debian 12; later systems have 21 instead
      if has openjdk-17-jdk-headless; then echo openjdk-17-jdk-headless; else echo openjdk-21-jdk-headless; fi
      ;;
    BROWSER) # a test looks at the pages in a browser without a window, where the distribution has one
      ! command -v chromium-headless-shell >/dev/null 2>&1 && ! command -v chromium >/dev/null 2>&1 || return 0
      if has chromium-headless-shell; then echo chromium-headless-shell; elif has chromium; then echo chromium; fi
      ;;
    golang-go) command -v go >/dev/null 2>&1 || echo "$1" ;; # another Go, from its own package or by hand, is as good
    rustc) command -v rustc >/dev/null 2>&1 || echo "$1" ;;
    *) echo "$1" ;;
  esac
}

missing=
for name in $(echo "$want" | tr ' ' '\n' | sort -u); do
  package=$(package_of "$name")
  [ -n "$package" ] || continue
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
if ! can_install && { [ -n "$missing" ] || ! has_lists; }; then
  echo "$0: needs root or sudo to install:${missing:- nothing, but to read the package lists}" >&2
  exit 1
fi
if [ -n "$missing" ]; then
  update
  echo "installing with apt:$missing"
  # shellcheck disable=SC2086  # a list of packages
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
fi
