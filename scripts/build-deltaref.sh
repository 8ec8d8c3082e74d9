#!/bin/sh
# Builds the reference that deltas are compared with, tests/tools/deltaref, into $BUILD/deltaref. It
# needs google/pprof's package `profile`; every Go toolchain brings a copy for its own `go tool
# pprof`, which is used from there, so that nothing is downloaded.
#
#   BUILD=build scripts/build-deltaref.sh
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
export GOPROXY=off GOFLAGS=-mod=mod

if ! command -v "$go" >/dev/null 2>&1; then
  echo "$0: needs go (1.19 or later): scripts/deps.sh test" >&2
  exit 1
fi
theirs=$("$go" env GOROOT)/src/cmd/vendor/github.com/google/pprof
if [ ! -d "$theirs/profile" ]; then
  echo "$0: no google/pprof at $theirs: this Go comes without the sources of its tools" >&2
  exit 1
fi
copy=$build/google-pprof
rm -rf "$copy"
mkdir -p "$copy"
cp -r "$theirs/profile" "$copy/"
printf 'module github.com/google/pprof\n\ngo 1.19\n' >"$copy/go.mod"
cp "$root/tests/tools/deltaref/go.mod" "$build/deltaref.mod"
printf '\nreplace github.com/google/pprof => %s\n' "$copy" >>"$build/deltaref.mod"
cd "$root/tests/tools/deltaref"
"$go" vet -modfile="$build/deltaref.mod" .
"$go" build -modfile="$build/deltaref.mod" -o "$build/deltaref" .
