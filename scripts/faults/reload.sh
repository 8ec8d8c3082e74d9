#!/bin/sh
# A hundred configurations a second for two minutes, good and bad ones by turns, each a switch of a
# ConfigMap's volume and a POST /-/reload, while 300 targets x 5 types whose counters grow are scraped.
# Prints what that has cost: scrapes, connections, phases, growth, memory.
#   BUILD=build scripts/faults/reload.sh [ARGUMENTS OF tests/e2e/cmd/reload]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/../go-tool.sh"
e2e_tool reload reload-bench

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/reload-bench" -program "${PROGRAM:-$build/profpull}" -dir "$run" "$@"
