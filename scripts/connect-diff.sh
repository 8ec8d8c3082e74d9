#!/bin/sh
# A client of the maker of the protocol against our query APIs: connect-go with the messages that
# Pyroscope publishes (tests/connectref), in protobuf and in JSON, with and without compression. The
# answers have to be the same. It needs a new Go and its module proxy, and is skipped without.
#
#   BUILD=build scripts/connect-diff.sh
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0

if ! (cd "$root/tests/connectref" && "$go" build -o "$build/connectref" .) >"$build/connectref.log" 2>&1; then
  if grep -qE 'dial tcp|no such host|proxyconnect|i/o timeout|requires go >=|go.mod requires|invalid go version|disabled by GOPROXY' "$build/connectref.log"; then
    echo "connect-diff: skipped: the modules of the client cannot be had here ($(tail -n 1 "$build/connectref.log"))"
    exit 0
  fi
  cat "$build/connectref.log"
  exit 1
fi
"$build/connectref" -server "$build/tests/query-server" -profiles "$root/tests/unit/data/merge"
