#!/bin/sh
# Runs each fuzz target over its corpus in tests/fuzz/corpus/<name>.
set -u

failed=0
for program in "$@"; do
  name=$(basename "$program")
  if output=$("$program" "tests/fuzz/corpus/$name" 2>&1); then
    echo "ok   $name ($output)"
  else
    echo "FAIL $name"
    echo "$output"
    failed=$((failed + 1))
  fi
done
echo "replay: $(($# - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
