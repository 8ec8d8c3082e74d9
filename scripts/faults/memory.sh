#!/bin/sh
# Eight pods with the largest profiles that are accepted beside 2,000 programs with large heaps, in a
# control group of MEMORY_LIMIT (256) MiB without swap. Needs root, for the group.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0
(cd "$root/tests/e2e" && "$go" build -o "$build/memory-bench" ./cmd/memory)
mkdir -p "$build/memory-run"
ulimit -n "$(ulimit -H -n)"
exec "$build/memory-bench" -program "${PROGRAM:-$build/profpull}" -dir "$build/memory-run" \
  -limit "${MEMORY_LIMIT:-256}" -time "${BENCH_SECONDS:-60}s" "$@"
