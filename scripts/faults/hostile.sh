#!/bin/sh
# Targets that send without end what is no profile, beside 200 good ones, each kind for
# FAULT_HOSTILE_SECONDS (20): the good ones lose no scrape. Over HTTP/2, which is off by default, each
# bad target holds the others for a second, once in ten minutes.
#
#   BUILD=build scripts/faults/hostile.sh [ARGUMENTS OF tests/e2e/cmd/faults]
set -eu

beside=$(dirname "$0")/../beside.sh
time=${FAULT_HOSTILE_SECONDS:-20}s
run() {
  "$beside" -targets 200 -interval 5s -timeout 4s -time "$time" "$@"
}
run -bad chunk-extension -bad-targets 1 "$@"
run -bad tiny-chunks -bad-targets 12 "$@"
run -bad early-hints -bad-targets 12 "$@"
http2='scheme: https; enable_http2: true; tls_config: {insecure_skip_verify: true}'
run -bad http2-hints -bad-targets 2 -bad-job "$http2" "$@"
run -bad http2-empty -bad-targets 2 -bad-job "$http2" "$@"
