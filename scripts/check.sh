#!/bin/sh
# All tests: unit tests, replay of the fuzz corpora, end to end. Ends with one line of totals.
# Called by `make check`; BUILD names the build directory, so that the sanitizer builds come through
# here as well.
set -u

make=${MAKE:-make}
build=${BUILD:-build}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
log=$logs/all
jobs=$(nproc)
code=0

$make -j"$jobs" BUILD="$build" all || exit 1

part() {
  # shellcheck disable=SC2086  # $make may have arguments
  nice -n "$2" $make --no-print-directory BUILD="$build" "$1" >"$logs/$1" 2>&1
  echo $? >"$logs/$1.code"
}

# The end-to-end tests mostly wait, so the others are built and run beside them, in the time that
# they leave.
part e2e 0 &
# shellcheck disable=SC2086  # $make may have arguments
if ! nice -n 5 $make -j"$jobs" BUILD="$build" tests-build; then
  echo "check: the tests do not compile; waiting for the end-to-end tests to end"
  wait
  exit 1
fi
for part in unit replay delta-diff e2e; do
  if [ "$part" = e2e ]; then
    wait
  else
    part "$part" 5
  fi
  echo "== $part"
  tee -a "$log" <"$logs/$part"
  [ "$(cat "$logs/$part.code")" -eq 0 ] || code=1
done

# Each part closes with "<part>: N passed, N failed[, N skipped]".
awk -v code="$code" '
  /^(unit|replay|delta-diff|e2e): [0-9]+ passed, [0-9]+ failed/ {
    passed += $2; failed += $4; if ($7 ~ /skipped/) skipped += $6; parts++
  }
  END {
    if (parts != 4) { print "check: not every part came to its end"; if (failed == 0) failed = 1 }
    else if (code != 0 && failed == 0) { failed = 1 }
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
  }' "$log"
exit "$code"
