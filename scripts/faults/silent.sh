#!/bin/sh
# 1,500 targets that accept and never answer, beside good ones, for FAULT_SECONDS (600), every 12 s
# with the default time limit of 10 s: the good ones lose no tick, and no request outlives its
# deadline by more than a second.
#
#   BUILD=build scripts/faults/silent.sh [ARGUMENTS OF tests/e2e/cmd/faults]
set -eu

exec "$(dirname "$0")/../beside.sh" -bad silent -bad-targets 1500 -time "${FAULT_SECONDS:-600}s" "$@"
