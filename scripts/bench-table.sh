#!/bin/sh
# One table of what profiles cost on their ways through profpull: the median of BENCH_RUNS (5) runs, and, with OLD, beside
# that of another tree (a clone of an earlier version, in which "make all tests-build" has been run), by turns. Figures are
# processor time where they can be: other work on the machine changes it less. Prints and never fails on a time.
#
#   BUILD=build OLD=/path/to/earlier/tree scripts/bench-table.sh [REGEX OF ROWS]
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh
root=${root:?}
rows=${1:-.}
runs=${BENCH_RUNS:-5}
port=${BENCH_PORT:-24090}
old=${OLD:+$OLD/build}
dir=$(mktemp -d)
sink=
cleanup() {
  [ -z "$sink" ] || kill "$sink" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

BUILD=$build GO=$go "$root/scripts/build-deltaref.sh"
for name in fakes bench; do e2e_tool "$name"; done
e2e_tool discovery bench-discovery
"$build/deltaref" -make 1800 "$dir/before" "$dir/after"
"$build/fakes" -targets 0 -sink "" -any "127.0.0.1:$port" >/dev/null 2>&1 &
sink=$!
sleep 1

# The number after, or before, a text in the output of a program.
after() { sed -n "s/.*$1 *\([0-9.][0-9.]*\).*/\1/p" | head -n 1; }
before() { sed -n "s/.*[^0-9.]\([0-9.][0-9.]*\) *$1.*/\1/p;s/^\([0-9.][0-9.]*\) *$1.*/\1/p" | head -n 1; }
put() {
  rm -rf "$dir/store"
  "$1/tests/store-bench" "$dir/store" "$2" "$3" ${4:+"$4"}
}
query() {
  rm -rf "$dir/store"
  "$1/tests/query-bench" "$dir/store" 10 20
}
scrape() {
  mkdir -p "$dir/run"
  "$build/bench" -program "$1/profpull" -fakes "$build/fakes" -dir "$dir/run" -targets "${BENCH_TARGETS:-1000}" \
    -interval 15s -time "${BENCH_SECONDS:-20}s" -fast 0 -delta auto
}
discover() {
  mkdir -p "$dir/run"
  "$build/bench-discovery" -program "$1/profpull" -dir "$dir/run" -only kept -encoding protobuf -heartbeats 1s
}

# Each row: a unit, and what prints its number, given a build directory.
row_delta() { "$1/tests/delta-tool" -b 500 "$dir/before" "$dir/after" | after 'median='; }
row_merge() { "$1/tests/merge-tool" -b 300 "$dir/before" "$dir/after" | after 'mean='; }
row_store() { put "$1" put 2000 "$dir/after" | before '.s of processor time' | awk '{ printf "%.3f\n", 1000 / $1 }'; }
row_written() { put "$1" paced "${BENCH_PACED:-10000}" '' | before 'bytes written to the disk for each profile, merging'; }
row_hour() { put "$1" hour 5 '' | sed 's/^merged in.*s, //' | before 's of processor time: '; }
row_otlp() { "$1/tests/write-bench" "http://127.0.0.1:$port" 2000 30720 otlp | before 'us of'; }
row_push() { "$1/tests/write-bench" "http://127.0.0.1:$port" 4000 30720 push | before 'us of'; }
row_receive_push() { "$1/tests/receive-bench" 1000 30720 push | before 'ms each'; }
row_receive_otlp() { "$1/tests/receive-bench" 1000 30720 otlp | before 'ms each'; }
row_query() { query "$1" | sed -n '/^flame graph of all /s/.*(CPU *\([0-9]*\)).*/\1/p'; }
# The two rows that follow have further figures, which the rows after them print.
row_scrape() {
  scrape "$1" >"$dir/out"
  after 'resident memory, peak' <"$dir/out" >>"$dir/$tree.resident"
  after 'CPU for 1,000 profiles' <"$dir/out"
}
row_list() {
  discover "$1" >"$dir/out"
  sed -n '/resident before, after, peak/s/.*, \([0-9.]*\) MiB:.*/\1/p' "$dir/out" | head -n 1 >>"$dir/$tree.list_peak"
  sed -n '/list to all targets/s/.*CPU *\([0-9.]*\) s.*/\1/p' "$dir/out" | head -n 1
}

median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }

table() {
  while IFS='|' read -r row unit what; do
    echo "$row" | grep -qE "$rows" || continue
    touch "$dir/new.$row" "$dir/old.$row"
    run=0
    while [ "$run" -lt "$runs" ] && [ "${what#  }" = "$what" ]; do
      run=$((run + 1))
      tree=old
      [ -z "$old" ] || "row_$row" "$old" >>"$dir/old.$row" 2>>"$dir/errors" || true
      tree=new
      "row_$row" "$build" >>"$dir/new.$row" 2>>"$dir/errors" || true
    done
    now=$(median <"$dir/new.$row")
    was=$(median <"$dir/old.$row")
    awk -v what="$what" -v unit="$unit" -v now="$now" -v was="$was" 'BEGIN {
      ratio = now + 0 > 0 && was + 0 > 0 ? sprintf("%.2f", now / was) : "-"
      printf "%-66s %10s %10s %6s  %s\n", what, was, now, ratio, unit }'
  done
}

echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
printf '%-66s %10s %10s %6s\n' "median of $runs, processor time unless it says otherwise" before now ratio
table <<'EOF'
delta|ms|delta of a heap of 103 KB (36 KB gzip)
merge|ms|merge of two such heaps
store|ms|store: a profile of 36 KB gzip
written|bytes|store: written to the disk for a profile of 13 KB, with merging
hour|s|store: merging an hour of 5 services with 5 types
otlp|us|OTLP out, gzip, a profile of 30 KB
push|us|push out, a profile of 30 KB
receive_push|ms|push in, a profile of 30 KB
receive_otlp|ms|OTLP in, gzip, a profile of 30 KB
query|ms|flame graph of all of 10 services, 20 minutes, not merged
scrape|s|1,000 targets x 5 types with deltas: 1,000 profiles
resident|MiB|  resident memory after it
list|s|10,000 pods, all kept: the first list
list_peak|MiB|  peak of resident memory
EOF
if [ -s "$dir/errors" ] && [ -n "${V:-}" ]; then cat "$dir/errors"; fi
