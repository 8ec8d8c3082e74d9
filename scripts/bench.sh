#!/bin/sh
# Figures for speed and memory: BENCH_TARGETS (1000) static targets with five types each, scraped
# every BENCH_INTERVAL (15s) and pushed, measured for BENCH_SECONDS (60) after a warm-up. Prints and
# never fails on a time. Then the same with a bare loop of libcurl (tests/tools/bare_loop.c), and the ratio. Method and published figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench.sh [ARGUMENTS OF tests/e2e/cmd/bench]
#
# The program gets the first core and the fakes the second (BENCH_PIN=false leaves that to the kernel).
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0

if ! command -v "$go" >/dev/null 2>&1; then
  echo "$0: needs go (1.19 or later): scripts/deps.sh test" >&2
  exit 1
fi
if [ ! -x "$build/profpull" ] || [ ! -x "$build/tests/bare-loop" ]; then
  echo "$0: no $build/profpull or $build/tests/bare-loop (make all tests-build)" >&2
  exit 1
fi
(cd "$root/tests/e2e" && "$go" build -o "$build/fakes" ./cmd/fakes && "$go" build -o "$build/bench" ./cmd/bench)

mkdir -p "$build/bench-run"
echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $("$build/profpull" version | head -n 1)"
exec "$build/bench" -program "$build/profpull" -bare "$build/tests/bare-loop" -fakes "$build/fakes" -dir "$build/bench-run" \
  -targets "${BENCH_TARGETS:-1000}" -interval "${BENCH_INTERVAL:-15s}" -time "${BENCH_SECONDS:-60}s" \
  -pin="${BENCH_PIN:-true}" "$@"
