#!/bin/sh
# Builds tests/e2e/cmd/faults and runs it: good targets beside bad ones. For scripts/faults.
#
#   BUILD=build scripts/beside.sh [ARGUMENTS OF tests/e2e/cmd/faults]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
e2e_tool fakes
e2e_tool faults

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/faults" -program "$build/profpull" -fakes "$build/fakes" -dir "$run" "$@"
