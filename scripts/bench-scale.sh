#!/bin/sh
# How CPU, memory and lateness grow with the targets: tests/e2e/cmd/bench with each number of
# BENCH_CURVE ("100 300 1000 3000 10000") for BENCH_SECONDS (30) after a warm-up, BENCH_RUNS (1)
# times, without ties to cores, and a line fitted to the medians. Then BENCH_LARGE (20000) targets
# every 60 s in one process, with CPU profiles of 14 s (Alloy's default), a list of BENCH_PODS
# (100000) small pods, all kept and then all dropped, and tests/tools/sharding_sim.c: shares of 100
# and of 200 replicas. A part that this machine has no room for is skipped, with the reason: a
# descriptor (ulimit -n) for each target, on each side, and about 25 KB of memory for each pod.
# BENCH_LARGE= and BENCH_PODS= leave a part out. docs/benchmarks.md.
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

large=${BENCH_LARGE-20000}
descriptors=$(awk '/^Max open files/ { print $4 == "unlimited" ? 1e9 : $4 }' /proc/self/limits)
if [ -n "$large" ] && [ "$descriptors" -lt "$large" ]; then
  echo "$large targets every 60 s: skipped: ulimit -n is $descriptors, expected $large"
elif [ -n "$large" ]; then
  "$build/bench" -program "$build/profpull" -fakes "$build/fakes" -dir "$out" -targets "$large" -fast 0 \
    -interval 60s -cpu-seconds 14s -time "${BENCH_LARGE_SECONDS:-60}s" -pin="${BENCH_PIN:-false}"
fi

pods=${BENCH_PODS-100000}
free_kb=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
if [ -n "$pods" ] && [ "$free_kb" -lt $((25 * pods)) ]; then
  echo "$pods pods: skipped: $((free_kb / 1024)) MiB of memory are free, expected $((25 * pods / 1024))"
elif [ -n "$pods" ]; then
  for kind in kept dropped; do
    BUILD=$build GO=$go "$root/scripts/bench-discovery.sh" -only "$kind" -encoding protobuf -pods "$pods" -size 3072 -heartbeats 10s
  done
fi

if [ -x "$build/tests/sharding-sim" ]; then
  "$build/tests/sharding-sim" 100 100000
  "$build/tests/sharding-sim" 200 100000
fi
