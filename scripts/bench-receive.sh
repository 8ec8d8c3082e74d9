#!/bin/sh
# How many profiles of 30 KB a second one core takes through each API that receives profiles, from the
# bytes of a request to the rules. Prints and never fails on a time. Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-receive.sh [PROFILES [BYTES]]
set -eu

build=${BUILD:-build}
taskset -c 0 "$build/tests/receive-bench" "${1:-5000}" "${2:-30720}"
