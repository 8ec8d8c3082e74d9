# shellcheck shell=sh
# Builds a Go program of tests/ that needs modules of others, for the scripts that compare with them.
# Sourced by those; sets root and build.

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=0

# module_tool NAME WHAT: $build/NAME of tests/NAME. Ends the script, as passed, if WHAT cannot be had
# here: without a new Go or its module proxy.
module_tool() {
  if ! (cd "$root/tests/$1" && "$go" build -o "$build/$1" .) >"$build/$1.log" 2>&1; then
    if grep -qE 'dial tcp|no such host|proxyconnect|i/o timeout|requires go >=|go.mod requires|invalid go version|disabled by GOPROXY' "$build/$1.log"; then
      echo "$(basename "$0" .sh): skipped: $2 cannot be had here ($(tail -n 1 "$build/$1.log"))"
      exit 0
    fi
    cat "$build/$1.log"
    exit 1
  fi
}
