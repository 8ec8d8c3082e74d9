#!/bin/sh
# The delta engine against google/pprof's own merge, sample by sample: 1,000 random pairs
# (DELTA_PAIRS), and pairs of a Go program under load. Merges of as many random sets, and of 500 random
# sets of that program's profiles of all types, byte by byte. And what old formats are converted to,
# against what google/pprof reads in them: as many profiles.
#
#   BUILD=build scripts/delta-diff.sh
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"
export GOPROXY=off GOFLAGS=-mod=mod

BUILD=$build GO=$go "$root/scripts/build-deltaref.sh" || exit 1
(cd "$root/tests/tools/loadgen" && "$go" build -o "$build/loadgen" .) || exit 1

passed=0
failed=0
for how in "delta-tool -pairs ${DELTA_PAIRS:-1000}" "delta-tool -loadgen $build/loadgen" \
  "merge-tool -merge ${DELTA_PAIRS:-1000}" "merge-tool -merge 500 -loadgen $build/loadgen" \
  "legacy-tool -legacy ${DELTA_PAIRS:-1000}"; do
  # shellcheck disable=SC2086  # several words
  if "$build/deltaref" -tool "$build/tests/"$how; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "delta-diff: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
