#!/bin/sh
# Runs libFuzzer programs for FUZZ_SECONDS each. New inputs go to build/corpus/<name>; a crash is
# kept there as crash-* and ends the run with an error.
set -u

seconds=${FUZZ_SECONDS:-60}
failed=0
for program in "$@"; do
  name=$(basename "$program")
  found=build/corpus/$name
  mkdir -p "$found"
  dict=
  [ -f "tests/fuzz/$name.dict" ] && dict="-dict=tests/fuzz/$name.dict"
  echo "fuzz $name for $seconds s"
  # shellcheck disable=SC2086  # an option or nothing
  if ! "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$found/" $dict "$found" "tests/fuzz/corpus/$name" \
    >"$found.log" 2>&1; then
    tail -n 40 "$found.log"
    echo "FAIL $name; see $found.log"
    failed=$((failed + 1))
  else
    grep -E 'number_of_executed_units|new_units_added' "$found.log"
  fi
done
echo "fuzz: $(($# - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
