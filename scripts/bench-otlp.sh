#!/bin/sh
# How many profiles a second the writer turns into OTLP and gets rid of on one core: 10,000 profiles of
# 30 KB (gzip) of 20 services, to a server on another core that reads and counts nothing. With and
# without compression of the requests. Prints and never fails on a time. Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-otlp.sh [PROFILES [BYTES]]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
addr=127.0.0.1:${BENCH_PORT:-24042}
e2e_tool fakes

taskset -c 1 "$build/fakes" -targets 0 -sink "" -any "$addr" >/dev/null 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
sleep 1
for compression in "" none; do
  printf '%-5s' "${compression:-gzip}"
  # shellcheck disable=SC2086 # no argument if empty
  taskset -c 0 "$build/tests/write-bench" "http://$addr" "${1:-10000}" "${2:-30720}" otlp $compression
done
