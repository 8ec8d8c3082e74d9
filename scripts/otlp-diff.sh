#!/bin/sh
# OTLP requests of ours, read in Go with the messages that OpenTelemetry publishes (tests/otlpref):
# each sample, value, label, line and mapping has to be what google/pprof reads in the profile. Random
# profiles that use everything a profile can hold, and those given as arguments. It needs a new Go and
# its module proxy, and is skipped without.
#
#   BUILD=build scripts/otlp-diff.sh [PROFILE...]
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0

if ! (cd "$root/tests/otlpref" && "$go" build -o "$build/otlpref" .) >"$build/otlpref.log" 2>&1; then
  if grep -qE 'dial tcp|no such host|proxyconnect|i/o timeout|requires go >=|go.mod requires|invalid go version|disabled by GOPROXY' "$build/otlpref.log"; then
    echo "otlp-diff: skipped: the published messages cannot be had here ($(tail -n 1 "$build/otlpref.log"))"
    exit 0
  fi
  cat "$build/otlpref.log"
  exit 1
fi
"$build/otlpref" -tool "$build/tests/otlp-tool" -random "${OTLP_PROFILES:-300}" "$root"/tests/unit/data/merge/*.pb "$@"
