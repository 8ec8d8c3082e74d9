#!/bin/sh
# Builds the reference that deltas and merges are compared with, tests/tools/deltaref, into $BUILD/deltaref.
# It uses the version of google/pprof that its go.mod names. Where that version cannot be had (an older
# Go, such as Debian 12's, or no module proxy), it uses the older copy that every Go toolchain brings
# for its own `go tool pprof`, and $BUILD/deltaref.old says why.
#
#   BUILD=build scripts/build-deltaref.sh
set -eu

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

if ! command -v "$go" >/dev/null 2>&1; then
  echo "$0: needs go (1.19 or later): scripts/deps.sh test" >&2
  exit 1
fi
mkdir -p "$build"
rm -f "$build/deltaref.old"
cd "$root/tests/tools/deltaref"
if GOFLAGS="-mod=readonly -buildvcs=false" "$go" build -o "$build/deltaref" . >"$build/deltaref.log" 2>&1; then
  GOFLAGS="-mod=readonly -buildvcs=false" "$go" vet .
  exit 0
fi
if ! cannot_be_had "$build/deltaref.log"; then
  cat "$build/deltaref.log" >&2
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
printf 'module profpull.test/deltaref\n\ngo 1.19\n\nrequire github.com/google/pprof v0.0.0\n\n' >"$build/deltaref.mod"
printf 'replace github.com/google/pprof => %s\n' "$copy" >>"$build/deltaref.mod"
export GOPROXY=off GOFLAGS="-mod=mod -buildvcs=false"
"$go" vet -modfile="$build/deltaref.mod" .
"$go" build -modfile="$build/deltaref.mod" -o "$build/deltaref" .
tail -n 1 "$build/deltaref.log" >"$build/deltaref.old"
