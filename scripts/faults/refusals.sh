#!/bin/sh
# A destination that refuses some tenants or some profiles for a minute: what arrives of the others. And
# one that is away for a minute: when the first profile arrives after it is back.
#   BUILD=build scripts/faults/refusals.sh [ARGUMENTS OF tests/e2e/cmd/refusals]
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/../go-tool.sh"
e2e_tool refusals

run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
"$build/refusals" -program "$build/profpull" -dir "$run" "$@"
