#!/bin/sh
# What a delta costs: heap profiles of 1,800 and 41,000 samples (100 KB and 2.5 MB before
# compression), both gzip steps included, beside a Go program that uses compress/gzip and
# google/pprof. Prints and never fails on a time.
#
#   BUILD=build scripts/bench-delta.sh [BEFORE AFTER]     with profiles of your own as well
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}

tool=$build/tests/delta-tool
ref=$build/deltaref
if [ ! -x "$tool" ]; then
  echo "$0: no program at $tool (make tests-build)" >&2
  exit 1
fi
BUILD=$build GO=$go "$root/scripts/build-deltaref.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# compare NAME ROUNDS BEFORE AFTER
compare() {
  echo "$1"
  printf '  ours: %s\n' "$("$tool" -b "$2" "$3" "$4")"
  printf '  Go:   %s\n' "$("$ref" -bench -n "$(($2 / 10))" "$3" "$4")"
}

for samples in 1800 41000; do
  "$ref" -make "$samples" "$dir/before" "$dir/after"
  plain=$(gzip -dc "$dir/after" | wc -c)
  compare "heap of $samples samples, $plain bytes plain" $((1800 * 200 / samples + 20)) \
    "$dir/before" "$dir/after"
done
if [ $# -eq 2 ]; then
  compare "$2" 100 "$1" "$2"
fi
