#!/bin/sh
# 1,500 targets that accept and never answer, beside good ones, for FAULT_SECONDS (600), every 12 s
# with the default time limit of 10 s: the good ones lose no tick, and no request outlives its
# deadline by more than a second.
#
#   BUILD=build scripts/faults/silent.sh [ARGUMENTS OF tests/e2e/cmd/faults]
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0
(cd "$root/tests/e2e" && "$go" build -o "$build/fakes" ./cmd/fakes && "$go" build -o "$build/faults" ./cmd/faults)

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/faults" -program "$build/profpull" -fakes "$build/fakes" -dir "$run" \
  -bad silent -bad-targets 1500 -time "${FAULT_SECONDS:-600}s" "$@"
