#!/bin/sh
# A destination is away for two minutes: 1,000 targets x 5 types whose counters grow, with the default
# limits. Prints how much of the growth has arrived in the end, and what it took.
#   BUILD=build scripts/faults/outage.sh [ARGUMENTS OF tests/e2e/cmd/outage]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/../go-tool.sh"

e2e_tool outage
mkdir -p "$build/outage-run"
exec "$build/outage" -program "$build/profpull" -dir "$build/outage-run" "$@"
