#!/bin/sh
# How long queries take over an hour of 100 services with five types each, one profile every 15
# seconds (120,000 profiles; needs a gigabyte under TMPDIR). Prints and never fails on a time.
# Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-query.sh [SERVICES [MINUTES [STACKS]]]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$build/tests/query-bench" "$dir/store" "$@"
