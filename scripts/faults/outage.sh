#!/bin/sh
# A destination is away for two minutes: 1,000 targets x 5 types whose counters grow, with the default
# limits. Prints how much of the growth has arrived in the end, and what it took.
#   BUILD=build scripts/faults/outage.sh [ARGUMENTS OF tests/e2e/cmd/outage]
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0

(cd "$root/tests/e2e" && "$go" build -o "$build/outage" ./cmd/outage)
mkdir -p "$build/outage-run"
exec "$build/outage" -program "$build/profpull" -dir "$build/outage-run" "$@"
