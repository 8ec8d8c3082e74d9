#!/bin/sh
# How many profiles a second the store takes on one core, and what merging makes of an hour of 100
# services at 15 s. Prints the bytes that are written to the disk for each profile as well: of profiles
# that are put as fast as possible, and at 200 a second, which takes 100 s. Never fails on a time.
# Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-store.sh [FILE...]     profiles to put; a CPU profile without any
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [ $# -eq 0 ]; then
  set -- "$root/tests/fuzz/corpus/fuzz_cli_summary/cpu.pb.gz"
fi
for file in "$@"; do
  printf '%s: ' "$(basename "$file")"
  taskset -c 0 "$build/tests/store-bench" "$dir/put" put 10000 "$file"
  rm -rf "$dir/put"
done
echo 'made profiles, 200 a second:'
"$build/tests/store-bench" "$dir/paced" paced 20000
rm -rf "$dir/paced"
"$build/tests/store-bench" "$dir/hour" hour 100 "$@"
"$build/tests/store-bench" "$dir/hour" read
