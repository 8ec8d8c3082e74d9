#!/bin/sh
# Eight pods with the largest profiles that are accepted beside 2,000 programs with large heaps, in a
# control group of MEMORY_LIMIT (256) MiB without swap. Needs root, for the group. Where there are no groups,
# the arguments -limit 0 -budget 205 give profpull the same budget.
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/../go-tool.sh"
e2e_tool memory memory-bench
mkdir -p "$build/memory-run"
# shellcheck disable=SC3045  # the shells of Debian know both
ulimit -n "$(ulimit -H -n)"
exec "$build/memory-bench" -program "${PROGRAM:-$build/profpull}" -dir "$build/memory-run" \
  -limit "${MEMORY_LIMIT:-256}" -time "${BENCH_SECONDS:-60}s" "$@"
