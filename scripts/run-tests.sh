#!/bin/sh
# Runs cmocka test programs one after the other; prints what failed and a line of totals.
set -u

passed=0
failed=0
skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# One line of cmocka's plain output for each test: "[       OK ] name".
count() { grep -c "^\[ *$1 *\] [a-zA-Z_]" "$log"; }

for program in "$@"; do
  name=$(basename "$program")
  "$program" >"$log" 2>&1
  code=$?
  ok=$(count OK)
  bad=$(count FAILED)
  skip=$(count SKIPPED)
  # The list at the end names each failed test once more.
  summary=$(grep -c '^\[ *FAILED *\] [0-9]' "$log")
  [ "$summary" -gt 0 ] && bad=$((bad / 2))
  if [ "$code" -ne 0 ] && [ "$bad" -eq 0 ]; then
    bad=1 # it crashed, or a fixture failed
  fi
  if [ "$((ok + bad + skip))" -eq 0 ]; then
    bad=1
    echo "$name: ran no test"
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
  skipped=$((skipped + skip))
  if [ "$bad" -gt 0 ]; then
    echo "FAIL $name (exit code $code)"
    cat "$log"
  else
    echo "ok   $name ($ok tests)"
  fi
done
echo "unit: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
