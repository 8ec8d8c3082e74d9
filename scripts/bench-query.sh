#!/bin/sh
# How long queries take over an hour of 100 services with five types each, one profile every 15
# seconds (120,000 profiles; needs two gigabytes under TMPDIR). 100 3 600 is the same hour as it is when
# it has been merged to one profile for each five minutes. 20 10080 20 600 300 is a week of 20 services, merged,
# in 168 files, with the sums of its days. Prints and never fails on a time.
# Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-query.sh [SERVICES [MINUTES [STACKS [DIFFERENT [INTERVAL]]]]]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$build/tests/query-bench" "$dir/store" "$@"
