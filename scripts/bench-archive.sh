#!/bin/sh
# Measures a query of 30 days of one service from an archive of 100 services whose days are merged, against a
# bucket in memory that takes 30 ms longer for each request: requests, bytes and time, with an empty cache and warm.
# Prints and never fails on a time. Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-archive.sh [SERVICES [DAYS [STACKS [DIFFERENT [DELAY [PODS]]]]]]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$build/tests/archive-bench" "$dir/store" "$@"
cat <<'END'

Beside Pyroscope, as it documents itself (not measured):

| | profpull | Pyroscope |
|---|---|---|
| object stores | S3 and servers with its API, GCS | S3, GCS, Azure, local files |
| objects | SQLite files of an hour, then of a day, each with a small index | blocks of Parquet |
| disk of a reader | none; a cache, if wanted | none since 2.0 |
END
