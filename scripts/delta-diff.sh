#!/bin/sh
# Compares deltas with google/pprof's own merge, sample by sample: 1,000 random pairs (DELTA_PAIRS) and
# pairs of a Go program under load. Compares merges byte by byte: as many random sets, and 500 random
# sets of that program's profiles of all types. Compares what old formats are converted to with what
# google/pprof reads in them: as many profiles.
#
# The reference is the version of google/pprof that tests/tools/deltaref/go.mod names. Without it (see
# build-deltaref.sh), profiles have no columns, which older versions do not merge in the same way; that
# counts as skipped.
#
#   BUILD=build scripts/delta-diff.sh
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

BUILD=$build GO=$go "$root/scripts/build-deltaref.sh" || exit 1
export GOPROXY=off GOFLAGS="-mod=mod -buildvcs=false"
(cd "$root/tests/tools/loadgen" && "$go" build -o "$build/loadgen-diff" .) || exit 1

passed=0
failed=0
skipped=0
columns=true
if [ -e "$build/deltaref.old" ]; then
  echo "columns are not compared: the pinned google/pprof cannot be had here ($(cat "$build/deltaref.old"))"
  columns=false
  skipped=1
fi
for how in "delta-tool -pairs ${DELTA_PAIRS:-1000}" "delta-tool -loadgen $build/loadgen-diff" \
  "merge-tool -merge ${DELTA_PAIRS:-1000}" "merge-tool -merge 500 -loadgen $build/loadgen-diff" \
  "legacy-tool -legacy ${DELTA_PAIRS:-1000}"; do
  # shellcheck disable=SC2086  # several words
  if "$build/deltaref" -columns=$columns -tool "$build/tests/"$how; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done
echo "delta-diff: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
