#!/bin/sh
# Runs cmocka test programs one after the other; prints what failed and a line of totals. Where the
# kernel allows it, each runs in a time namespace in which the machine was booted five seconds ago,
# so that no test relies on a large monotonic clock.
set -u

passed=0
failed=0
skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# One line of cmocka's plain output for each test: "[       OK ] name".
count() { grep -c "^\[ *$1 *\] [a-zA-Z_]" "$log"; }

# The uptime outside; inside, both clocks that begin with the boot are moved back.
after_boot() {
  up=$(cut -d. -f1 /proc/uptime)
  # shellcheck disable=SC2086  # a list of options
  unshare $namespaces --monotonic=$((5 - up)) --boottime=$((5 - up)) "$@"
}

# Root may make a time namespace, others one in a user namespace, some nobody at all.
choose_namespaces() {
  # shellcheck disable=SC2016  # for the shell inside
  for namespaces in "--time" "--user --map-current-user --time"; do
    after_boot sh -c 'read -r up _ </proc/uptime && [ "${up%.*}" -lt 60 ]' 2>/dev/null && return
  done
  namespaces=
}
choose_namespaces

for program in "$@"; do
  name=$(basename "$program")
  ${namespaces:+after_boot} "$program" >"$log" 2>&1
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
[ -n "$namespaces" ] ||
  echo "unit: skipped: running as five seconds after boot (unshare cannot make a time namespace here)"
echo "unit: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
