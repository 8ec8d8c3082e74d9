#!/bin/sh
# What Kubernetes discovery costs: 10,000 pods of 12 KiB from a fake API server; the first list, a list
# again, heartbeats, and most of the pods going at once. Prints and never fails on a time. Method and
# published figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-discovery.sh [ARGUMENTS OF tests/e2e/cmd/discovery]
#
# The program gets the first core, the fake server the second.
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

if [ ! -x "$build/profpull" ]; then
  echo "$0: no program at $build/profpull (make)" >&2
  exit 1
fi
e2e_tool discovery bench-discovery

mkdir -p "$build/bench-run"
pin=
if [ "$(nproc)" -gt 1 ] && command -v taskset >/dev/null 2>&1; then
  pin="taskset -c 1"
fi
echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $("$build/profpull" version | head -n 1)"
# shellcheck disable=SC2086 # two words
exec $pin "$build/bench-discovery" -program "$build/profpull" -dir "$build/bench-run" "$@"
