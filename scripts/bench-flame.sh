#!/bin/sh
# How long `profpull flame` takes to draw profiles of 1 MB, with the start of the process. Prints and never fails on a time.
# Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-flame.sh [OPTIONS OF tests/e2e/cmd/flamebench]
set -eu
cd "$(dirname "$0")/../tests/e2e"
build=${BUILD:-../../build}
exec "${GO:-go}" run -buildvcs=false ./cmd/flamebench -profpull "$build/profpull" "$@"
