#!/bin/sh
# Runs cmocka test programs, as many at a time as there are processors (or JOBS); prints what failed
# and a line of totals. Where the kernel allows it, each runs in a time namespace in which the machine
# was booted five seconds ago, so that no test relies on a large monotonic clock.
#
#   scripts/run-tests.sh PROGRAM...
set -u

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

# One line of cmocka's plain output for each test: "[       OK ] name".
count() { grep -c "^\[ *$1 *\] [a-zA-Z_]" "$log"; }

# Runs a program; writes its counts of passed, failed and skipped tests to a file.
run_one() {
  name=$(basename "$1")
  log=$results/$name.log
  ${namespaces:+after_boot} "$1" >"$log" 2>&1
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
    echo "$name: ran no test" >>"$log"
  fi
  echo "$ok $bad $skip" >"$results/$name.counts"
  if [ "$bad" -gt 0 ]; then
    # At once, so that nothing of another program comes between.
    printf 'FAIL %s (exit code %s)\n%s\n' "$name" "$code" "$(cat "$log")"
  else
    echo "ok   $name ($ok tests)"
  fi
}

if [ -n "${RUN_ONE_RESULTS:-}" ]; then # this script, called by itself below
  results=$RUN_ONE_RESULTS
  namespaces=$RUN_ONE_NAMESPACES
  run_one "$1"
  exit 0
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
choose_namespaces
printf '%s\n' "$@" | RUN_ONE_RESULTS=$results RUN_ONE_NAMESPACES=$namespaces \
  xargs -n 1 -P "${JOBS:-$(nproc)}" "$0"
[ -n "$namespaces" ] ||
  echo "unit: skipped: running as five seconds after boot (unshare cannot make a time namespace here)"
cat "$results"/*.counts | awk -v programs=$# '
  { passed += $1; failed += $2; skipped += $3 }
  END {
    if (NR != programs) { print "unit: " programs - NR " programs did not run"; failed++ }
    printf "unit: %d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
  }'
