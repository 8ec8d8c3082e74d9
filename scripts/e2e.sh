#!/bin/sh
# The end-to-end tests: builds the fakes and the load program, fetches the real programs, and runs
# the Go tests against $BUILD/profpull (or PROFPULL_BIN). Ends with a line of totals.
#
#   BUILD=build scripts/e2e.sh [ARGUMENTS OF go test]     e.g. -run TestPods -v
#
# KUBEBUILDER_ASSETS names a directory with kube-apiserver and etcd for the test against real ones.
# E2E_LONG=1 makes the outage of an endpoint two minutes long, that of one without a spool ten, and
# shares 3,000 targets for five;
# PROFPULL_VALGRIND=1 runs the program under valgrind; PROFPULL_WITHOUT_PROGRAMS=1 does without
# Debian's programs (no network, no apt).
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
export GO="${GO:-go}"
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0
export PROFPULL_BIN="${PROFPULL_BIN:-$build/profpull}"
export PROFPULL_LOADGEN="$build/loadgen"

if ! command -v "$GO" >/dev/null 2>&1; then
  echo "$0: needs go (1.19 or later): scripts/deps.sh test" >&2
  exit 1
fi
if [ ! -x "$PROFPULL_BIN" ]; then
  echo "$0: no program at $PROFPULL_BIN (make)" >&2
  exit 1
fi

# The sanitizer builds lie below the plain one and share its programs.
programs=$build
[ ! -d "$build/../programs" ] || programs=$build/..
if [ -n "${PROFPULL_WITHOUT_PROGRAMS:-}" ]; then
  echo "$0: without the real programs; the tests that need them are skipped" >&2
elif BUILD=$programs "$root/scripts/test-programs.sh"; then
  export PROFPULL_PROGRAMS="$programs/programs"
else
  echo "$0: no real programs to scrape; PROFPULL_WITHOUT_PROGRAMS=1 skips the tests that need them" >&2
  exit 1
fi
(cd "$root/tests/tools/loadgen" && "$GO" build -o "$PROFPULL_LOADGEN" .) || exit 1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cd "$root/tests/e2e" || exit 1
# The tests mostly wait: more of them at a time than there are cores.
"$GO" vet ./... || exit 1
"$GO" test -count=1 -timeout 60m -parallel 8 -v "$@" ./... >"$log" 2>&1
code=$?

count() { grep -c "^ *--- $1: " "$log"; }
# What the failed tests printed, each line after the name of its test: in the log of tests that run
# side by side it is scattered.
failures() {
  awk 'FNR == NR { if (match($0, /^ *--- FAIL: /)) failed[$3] = 1; next }
    /^=== (RUN|CONT|NAME|PAUSE) / { name = $3; next }
    /^ *--- / { name = $3 }
    name in failed { print name ": " $0 }' "$log" "$log"
}
passed=$(count PASS)
failed=$(count FAIL)
skipped=$(count SKIP)
if [ "$code" -ne 0 ]; then
  [ "$failed" -gt 0 ] || failed=1 # it did not build, or crashed
  cat "$log"
  echo "$0: what the failed tests printed:"
  failures
else
  # Without -v from the caller: the results, and the figures that the tests print.
  grep -E '^ *--- |^ok|^FAIL|^    [a-z_]+_test\.go:' "$log"
fi
if [ "$((passed + failed))" -eq 0 ]; then
  failed=1
  echo "$0: ran no test"
fi
echo "e2e: $passed passed, $failed failed, $skipped skipped"
[ "$code" -eq 0 ] && [ "$failed" -eq 0 ]
