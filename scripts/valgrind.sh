#!/bin/sh
# Runs the unit tests given as arguments under valgrind, and then one whole run of the program: it
# starts, scrapes fake targets, pushes, gets SIGTERM and drains. Any leak or error fails.
#
#   BUILD=build scripts/valgrind.sh build/tests/test_*
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
if ! command -v valgrind >/dev/null 2>&1; then
  echo "$0: needs valgrind: scripts/deps.sh lint" >&2
  exit 1
fi
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

result() { # NAME CODE
  if [ "$2" -eq 0 ]; then
    echo "ok   $1"
    passed=$((passed + 1))
  else
    echo "FAIL $1 (exit code $2)"
    cat "$log"
    failed=$((failed + 1))
  fi
}

# What single programs need beyond the common options.
extra() { # NAME
  case "$1" in
    # Machine code made by PCRE2 reads ahead.
    test_regex_golden | test_relabel_reads | test_agent_ports) echo --undef-value-errors=no ;;
  esac
  # tests/unit/lib/failing_malloc.h: the malloc() of the program, not that of valgrind.
  if grep -qs FAIL_ALL "$root"/tests/unit/*/"$1.c"; then
    echo --soname-synonyms=somalloc=nouserintercepts
  fi
}

for program in "$@"; do
  # A test that ends a child of its own by force leaves what that child held: children are not
  # followed.
  # shellcheck disable=SC2046
  PROFPULL_VALGRIND=1 valgrind --quiet --leak-check=full --show-leak-kinds=definite,indirect,possible \
    --errors-for-leak-kinds=definite,indirect --error-exitcode=99 --fair-sched=try \
    --suppressions="$root/scripts/valgrind.supp" \
    $(extra "$(basename "$program")") "$program" >"$log" 2>&1
  result "$(basename "$program")" $?
done

PROFPULL_VALGRIND=1 BUILD=$build "$root/scripts/e2e.sh" \
  -run '^(TestTerminationDrains|TestPushIsByteForByte|TestPodsComeAndGo)$' >"$log" 2>&1
result "run: start, scrape, push, SIGTERM" $?

echo "valgrind: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
