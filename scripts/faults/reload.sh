#!/bin/sh
# A hundred configurations a second for two minutes, good and bad ones by turns, each a switch of a
# ConfigMap's volume and a POST /-/reload, while 300 targets x 5 types whose counters grow are scraped.
# Prints what that has cost: scrapes, connections, phases, growth, memory.
#   BUILD=build scripts/faults/reload.sh [ARGUMENTS OF tests/e2e/cmd/reload]
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0
(cd "$root/tests/e2e" && "$go" build -o "$build/reload-bench" ./cmd/reload)

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/reload-bench" -program "${PROGRAM:-$build/profpull}" -dir "$run" "$@"
