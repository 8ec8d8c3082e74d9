#!/bin/sh
# Builds tests/e2e/cmd/faults and runs it: good targets beside bad ones. For scripts/faults.
#
#   BUILD=build scripts/beside.sh [ARGUMENTS OF tests/e2e/cmd/faults]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0
(cd "$root/tests/e2e" && "$go" build -o "$build/fakes" ./cmd/fakes && "$go" build -o "$build/faults" ./cmd/faults)

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/faults" -program "$build/profpull" -fakes "$build/fakes" -dir "$run" "$@"
