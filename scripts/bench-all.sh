#!/bin/sh
# All figures of one machine, in forty-odd minutes: the table of bench-table.sh (beside that of an earlier tree with
# OLD=...), passing profiles on beside a bare loop, deltas of
# counters that grow, one delta beside google/pprof, the curve up to 10,000 targets, and discovery.
# BENCH_RUNS (5) runs of BENCH_SECONDS (20); the curve has three, of BENCH_CURVE ("3000 10000").
# Prints medians, and never fails on a time. docs/benchmarks.md.
#
#   BUILD=build scripts/bench-all.sh
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
export BENCH_RUNS="${BENCH_RUNS:-5}" BENCH_SECONDS="${BENCH_SECONDS:-20}" BENCH_CURVE="${BENCH_CURVE:-3000 10000}"

part() {
  echo
  echo "== $1 ($(date +%T), load $(cut -d ' ' -f 1 /proc/loadavg))"
  shift
  "$@" || echo "$1: ended with $?"
}

part "the table" "$root/scripts/bench-table.sh"
part "profiles passed on, deltas off; one delta" "$root/scripts/bench.sh"
part "deltas of counters that grow" "$root/scripts/bench.sh" -delta auto -fast 0 -bare=
runs=$((BENCH_RUNS < 3 ? BENCH_RUNS : 3))
part "targets" env BENCH_RUNS="$runs" BENCH_LARGE= BENCH_PODS= "$root/scripts/bench-scale.sh"
part "Kubernetes discovery" "$root/scripts/bench-discovery.sh" -only kept -heartbeats 10s
echo
echo "end: $(date +%T), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
