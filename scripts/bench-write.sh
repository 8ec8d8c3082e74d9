#!/bin/sh
# How many profiles a second the writer gets rid of on one core: 30,000 profiles of 30 KB to a fake
# server on another core that reads and counts. Prints and never fails on a time. Figures:
# docs/benchmarks.md.
#
#   BUILD=build scripts/bench-write.sh [PROFILES [BYTES]]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
addr=127.0.0.1:${BENCH_PORT:-24041}
e2e_tool fakes

taskset -c 1 "$build/fakes" -targets 0 -sink "$addr" -cheap >/dev/null 2>&1 &
sink=$!
trap 'kill $sink 2>/dev/null || true' EXIT
sleep 1
for protocol in push ingest; do
  printf '%-7s ' "$protocol"
  taskset -c 0 "$build/tests/write-bench" "http://$addr" "${1:-30000}" "${2:-30720}" "$protocol"
done
