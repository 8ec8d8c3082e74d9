#!/bin/sh
# Figures for speed and memory: BENCH_TARGETS (1000) static targets with five types each, scraped
# every BENCH_INTERVAL (15s) and pushed, measured for BENCH_SECONDS (60) after a warm-up. Prints and
# never fails on a time. Then the same with a bare loop of libcurl (tests/tools/bare_loop.c), and the
# ratio. Method and published figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench.sh [ARGUMENTS OF tests/e2e/cmd/bench]
#
# BENCH_RUNS (1): runs; of several, the table has medians and the least and the greatest value, and
# without arguments one delta beside google/pprof (bench-delta.sh) follows. BENCH_PEER: the path of another agent that
# reads Alloy's configuration, run in the same way; it computes deltas, so compare with "-delta auto".
# The program gets the first core and the fakes the second (BENCH_PIN=false leaves that to the kernel).
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
runs=${BENCH_RUNS:-1}

if [ ! -x "$build/profpull" ] || [ ! -x "$build/tests/bare-loop" ]; then
  echo "$0: no $build/profpull or $build/tests/bare-loop (make all tests-build)" >&2
  exit 1
fi
for name in fakes bench benchtable; do e2e_tool "$name"; done

# The machine, and how busy it is.
machine() {
  echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, $("$build/profpull" version | head -n 1)"
  echo "load: $(cut -d ' ' -f 1-3 /proc/loadavg)"
}

run() {
  "$build/bench" -program "$build/profpull" -bare "$build/tests/bare-loop" -fakes "$build/fakes" -dir "$build/bench-run" \
    -targets "${BENCH_TARGETS:-1000}" -interval "${BENCH_INTERVAL:-15s}" -time "${BENCH_SECONDS:-60}s" \
    -pin="${BENCH_PIN:-true}" -peer "${BENCH_PEER:-}" "$@"
}

mkdir -p "$build/bench-run"
machine
if [ "$runs" -eq 1 ]; then
  run "$@"
  exit
fi
rm -f "$build"/bench-run/run-*.txt
i=0
while [ "$i" -lt "$runs" ]; do
  i=$((i + 1))
  run "$@" >"$build/bench-run/run-$i.txt"
done
"$build/benchtable" "$build"/bench-run/run-*.txt
if [ $# -eq 0 ] && [ -x "$build/tests/delta-tool" ]; then
  BUILD=$build GO=$go "$root/scripts/bench-delta.sh"
fi
machine | tail -n 1
