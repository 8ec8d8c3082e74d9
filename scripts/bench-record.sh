#!/bin/sh
# What recorded metrics cost: BENCH_TARGETS (200) targets with five types each, scraped every 2 s without deltas and
# pushed, measured for BENCH_SECONDS (10). Three ways, by turns, BENCH_RUNS (3) times: without rules, with five
# rules that no profile matches, and with five that match three of the five types. Prints the CPU for 1,000 profiles
# that were delivered, as medians, and the ratio to the first.
#
# Noise exceeds the cost of rules that no profile matches. Therefore valgrind, if it is installed, counts the
# instructions of each way in user space, and those of the functions of record/ with all that they call. Their share
# does not depend on how busy the machine is. Labels of samples are not repaired then, since the first profile of each
# series would be inflated for that. Never fails on a time. docs/recorded-metrics.md.
#
#   BUILD=build scripts/bench-record.sh [ARGUMENTS OF tests/e2e/cmd/bench]
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh
e2e_tool fakes
e2e_tool bench
out=$(mktemp -d)
running=
cleanup() {
  [ -z "$running" ] || kill "$running" 2>/dev/null || true
  rm -rf "$out"
}
trap cleanup EXIT

# bench WAY PROGRAM TARGETS SECONDS ...: one run; WAY is none, miss or match.
bench() {
  rules=$1 program=$2 targets=$3 seconds=$4
  shift 4
  [ "$rules" != none ] || rules=
  "$build/bench" -program "$program" -fakes "$build/fakes" -dir "$out" -targets "$targets" -fast 0 -interval 2s \
    -time "${seconds}s" -pin="${BENCH_PIN:-true}" -record "$rules" "$@"
}

# figure NAME FILE: the first number of the line NAME of a run.
figure() {
  sed -n "s/^  $1 *\([0-9.]*\).*/\1/p" "$2" | head -n 1
}

title() {
  case $1 in
  none) echo "without rules" ;;
  miss) echo "five rules, none matches" ;;
  match) echo "five rules that match" ;;
  esac
}

by_turns() {
  run=0
  while [ "$run" -lt "${BENCH_RUNS:-3}" ]; do
    run=$((run + 1))
    for way in none miss match; do
      bench "$way" "$build/profpull" "${BENCH_TARGETS:-200}" "${BENCH_SECONDS:-10}" "$@" >"$out/run"
      printf '%s %s %s %s\n' "$way" "$(figure 'CPU for 1,000 profiles' "$out/run")" \
        "$(figure 'profiles sent, dropped, waiting' "$out/run")" "$(figure recorded "$out/run")" >>"$out/turns"
    done
  done
  for way in none miss match; do
    base=$(cat "$out/base" 2>/dev/null || true)
    grep "^$way " "$out/turns" | sort -n -k 2,2 | awk -v title="$(title $way)" -v base="$base" -v keep="$out/base" '
      { cpu[NR] = $2; sent += $3; sums += $4 }
      END {
        median = NR % 2 ? cpu[(NR + 1) / 2] : (cpu[NR / 2] + cpu[NR / 2 + 1]) / 2
        if (base == "") { base = median; print median >keep }
        printf "  %-26s %.3f s (%.3f to %.3f), ratio %.3f; %d profiles delivered, %d sums\n",
          title, median, cpu[1], cpu[NR], median / base, sent, sums
      }'
  done
}

# reading: profiles that the queue of the destination has accepted so far.
reading() {
  curl -sf "http://$address/metrics" | awk '/^profpull_write_accepted_profiles_total/ { n += $2 } END { printf "%d", n }'
}

# counted WAY: instructions of a short run under callgrind, between two moments after the warm-up.
counted() {
  rm -f "$out"/callgrind.* "$out/pid" "$out/bench.yaml"
  printf '#!/bin/sh\necho $$ >%s/pid\nexec valgrind --tool=callgrind --callgrind-out-file=%s/callgrind.out %s/profpull "$@"\n' \
    "$out" "$out" "$build" >"$out/program"
  chmod +x "$out/program"
  bench "$1" "$out/program" 20 40 -pin=false -repair=false >"$out/run" 2>&1 &
  running=$!
  until [ -s "$out/pid" ] && address=$(sed -n 's/^server: .*listen: "\([^"]*\)".*/\1/p' "$out/bench.yaml") &&
    curl -sf "http://$address/-/ready" >/dev/null; do
    kill -0 "$running" || return 1
    sleep 0.5
  done
  sleep 6
  callgrind_control -z "$(cat "$out/pid")" >/dev/null 2>&1
  passed=$(reading)
  sleep "${BENCH_SECONDS:-10}"
  callgrind_control -d "$(cat "$out/pid")" >/dev/null 2>&1
  passed=$(($(reading) - passed))
  wait "$running" || return 1
  running=
  # Functions that the others call, with what they call themselves.
  callgrind_annotate --inclusive=yes --auto=no --threshold=100 "$out/callgrind.out.1" 2>/dev/null | tr -d , |
    awk -v title="$(title "$1")" -v passed="$passed" '
      / PROGRAM TOTALS/ { all = $1 }
      /[:](record_begin|record_end|counting_run|rule_count|record_item_free)( |$)/ { room += $1 }
      END {
        if (passed == 0) { print "  " title ": no profile passed"; exit }
        printf "  %-26s %.0f thousand, of them in record/ %.1f thousand: %.2f %% (%d profiles)\n",
          title, all / passed / 1000, room / passed / 1000, 100 * room / all, passed
      }'
}

echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "CPU for 1,000 profiles"
by_turns "$@"
if ! command -v callgrind_control >/dev/null 2>&1; then
  echo "instructions: skipped: needs valgrind (scripts/deps.sh lint)"
  exit 0
fi
echo "instructions for one profile in user space"
for way in none miss match; do
  counted "$way" || {
    echo "  $(title "$way"): could not be counted"
    tail -n 5 "$out/run"
  }
done
