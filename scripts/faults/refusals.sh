#!/bin/sh
# A destination that refuses some tenants or some profiles for a minute: what arrives of the others. And
# one that is away for a minute: when the first profile arrives after it is back.
#   BUILD=build scripts/faults/refusals.sh [ARGUMENTS OF tests/e2e/cmd/refusals]
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0
(cd "$root/tests/e2e" && "$go" build -o "$build/refusals" ./cmd/refusals)

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/refusals" -program "$build/profpull" -dir "$run" "$@"
