#!/bin/sh
# How CPU, memory and lateness grow with the targets: tests/e2e/cmd/bench with each number of
# BENCH_CURVE ("100 300 1000 3000 10000") for BENCH_SECONDS (30) after a warm-up, BENCH_RUNS (1)
# times, without ties to cores, and a line fitted to the medians. Then tests/tools/sharding_sim.c: shares of 100 replicas.
# 10,000 targets need 20,000 descriptors (ulimit -n) for each side. docs/benchmarks.md.
#
#   BUILD=build scripts/bench-scale.sh [ARGUMENTS OF tests/e2e/cmd/bench]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
for name in fakes bench benchtable; do e2e_tool "$name"; done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
run=0
while [ "$run" -lt "${BENCH_RUNS:-1}" ]; do
  run=$((run + 1))
  for n in ${BENCH_CURVE:-100 300 1000 3000 10000}; do
    "$build/bench" -program "$build/profpull" -fakes "$build/fakes" -dir "$out" -targets "$n" -fast 0 \
      -interval "${BENCH_INTERVAL:-15s}" -time "${BENCH_SECONDS:-30}s" -pin="${BENCH_PIN:-false}" "$@" >"$out/$n-$run.txt"
  done
done
"$build/benchtable" -fit "$out"/*-*.txt
if [ -x "$build/tests/sharding-sim" ]; then
  "$build/tests/sharding-sim" 100 100000
fi
