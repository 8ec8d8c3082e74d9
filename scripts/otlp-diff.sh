#!/bin/sh
# OTLP requests of ours, read in Go with the messages that OpenTelemetry publishes (tests/otlpref):
# each sample, value, label, line and mapping has to be what google/pprof reads in the profile. Random
# profiles that use everything a profile can hold, and those given as arguments. Then the messages are
# encoded by Go, and read by us: the profiles that a receiver makes of them have to be the first ones. It
# needs a new Go and its module proxy, and is skipped without.
#
#   BUILD=build scripts/otlp-diff.sh [PROFILE...]
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

module_tool otlpref "the published messages"
"$build/otlpref" -tool "$build/tests/otlp-tool" -random "${OTLP_PROFILES:-300}" "$root"/tests/unit/data/merge/*.pb "$@"
