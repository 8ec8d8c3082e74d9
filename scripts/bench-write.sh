#!/bin/sh
# How many profiles a second the writer gets rid of on one core: 30,000 profiles of 30 KB to a fake
# server on another core that reads and counts. Prints and never fails on a time. Figures:
# docs/benchmarks.md.
#
#   BUILD=build scripts/bench-write.sh [PROFILES [BYTES]]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0
addr=127.0.0.1:${BENCH_PORT:-24041}
(cd "$root/tests/e2e" && "$go" build -o "$build/fakes" ./cmd/fakes)

taskset -c 1 "$build/fakes" -targets 0 -sink "$addr" -cheap >/dev/null 2>&1 &
sink=$!
trap 'kill $sink 2>/dev/null || true' EXIT
sleep 1
for protocol in push ingest; do
  printf '%-7s ' "$protocol"
  taskset -c 0 "$build/tests/write-bench" "http://$addr" "${1:-30000}" "${2:-30720}" "$protocol"
done
