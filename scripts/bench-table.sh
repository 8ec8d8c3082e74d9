#!/bin/sh
# One table of what profiles, lists, queries and faults cost: the median of BENCH_RUNS (5) runs, fewer for slow rows, and, with OLD,
# beside that of another tree (a clone of an earlier version, in which "make all tests-build" has been run), by turns. Figures are
# processor time where they can be: other work on the machine changes it less. A row that begins with spaces is a further figure of
# the runs of the row above. Prints and never fails on a time; takes some 12 minutes, or 25 with OLD.
#
#   BUILD=build OLD=/path/to/earlier/tree scripts/bench-table.sh [REGEX OF ROWS]
#
# BENCH_SECONDS (20) and BENCH_TARGETS (1000) of the row "scrape", BENCH_DOWN (60): seconds without a destination, BENCH_PACED (10000):
# profiles at 200 a second, BENCH_SERVICES (100) of the hours of the store and of queries. V=1 prints errors of the rows.
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh
root=${root:?}
rows=${1:-.}
runs=${BENCH_RUNS:-5}
port=${BENCH_PORT:-24090}
services=${BENCH_SERVICES:-100}
down=${BENCH_DOWN:-60}
old=${OLD:+$OLD/build}
dir=$(mktemp -d)
sink=
cleanup() {
  [ -z "$sink" ] || kill "$sink" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

BUILD=$build GO=$go "$root/scripts/build-deltaref.sh"
for name in fakes bench outage; do e2e_tool "$name"; done
e2e_tool discovery bench-discovery
"$build/deltaref" -make 1800 "$dir/before" "$dir/after"
mkdir "$dir/run"
"$build/fakes" -targets 0 -sink "" -any "127.0.0.1:$port" >/dev/null 2>&1 &
sink=$!
sleep 1

# The number after, or before, a text in the output of a program.
after() { sed -n "s/.*$1 *\([0-9.][0-9.]*\).*/\1/p" | head -n 1; }
before() { sed -n "s/.*[^0-9.]\([0-9.][0-9.]*\) *$1.*/\1/p;s/^\([0-9.][0-9.]*\) *$1.*/\1/p" | head -n 1; }
median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }
# also ROW: standard input is a figure of a row that has no runs of its own.
also() { cat >>"$dir/$tree.$1"; }

put() {
  rm -rf "$dir/store"
  "$1/tests/store-bench" "$dir/store" "$2" "$3" ${4:+"$4"}
}
# query BUILD ARGUMENTS: fills a store and asks each question three times.
query() {
  program=$1/tests/query-bench
  shift
  rm -rf "$dir/store"
  "$program" "$dir/store" "$@" >"$dir/out"
  rm -rf "$dir/store"
}
# The medians of the three answers to a question: processor time, and the time that the answer took.
cpu_of() { sed -n "s/^$1  .*/&/p" "$dir/out" | grep -o 'CPU *[0-9]*' | tr -dc '0-9\n' | median; }
time_of() { sed -n "s/^$1  //p" "$dir/out" | grep -o '[0-9]* ms (' | tr -dc '0-9\n' | median; }
# answers ROW QUESTION: both, the first as a figure of a row, the second as that of the next.
answers() {
  cpu_of "$2" | also "$1"
  time_of "$2" | also "$1_time"
}
scrape() {
  "$build/bench" -program "$1/profpull" -bare "$2" -fakes "$build/fakes" -dir "$dir/run" -targets "${BENCH_TARGETS:-1000}" \
    -interval 15s -time "${BENCH_SECONDS:-20}s" -fast 0 -delta auto
}
discover() { "$build/bench-discovery" -program "$1/profpull" -dir "$dir/run" -encoding protobuf "$2" "$3" -heartbeats 1s; }
# outage_figure WHEN NAME: a number of a line of cmd/outage.
outage_figure() { sed -n "s/^$1 (.*$2 \([0-9.]*\).*/\1/p" "$dir/out"; }

# Each row: a function that prints its number, given a build directory.
row_scrape() {
  bare=
  [ "$tree" = old ] || bare=$build/tests/bare-loop
  scrape "$1" "$bare" >"$dir/out"
  after 'resident memory, peak' <"$dir/out" | also scrape_resident
  after 'CPU for 1,000 profiles' <"$dir/out" | tee "$dir/$tree.last"
  [ -n "$bare" ] || return 0
  # The bare loop is the same beside both trees.
  loop=$(sed -n '/^a bare loop/,$p' "$dir/out" | after 'CPU for 1,000 profiles')
  for tree in old new; do
    [ ! -s "$dir/$tree.last" ] || awk -v loop="$loop" '{ printf "%.2f\n", $1 / loop }' "$dir/$tree.last" | also scrape_bare
  done
}
row_away() {
  "$build/outage" -program "$1/profpull" -dir "$dir/run" -down "${down}s" >"$dir/out"
  outage_figure 'in the end' peak | also away_peak
  sed -n 's/.* \([0-9.]*\) % of the growth has arrived.*/\1/p' "$dir/out" | also away_arrived
  sed -n 's/.*first profile came \([0-9.]*\) s after.*/\1/p' "$dir/out" | also away_first
  echo "$(outage_figure 'before the outage' cpu) $(outage_figure 'at the end of the outage' cpu)" |
    awk -v down="$down" '{ printf "%.1f\n", 100 * ($2 - $1) / down }'
}
row_list() {
  discover "$1" -only kept >"$dir/out"
  sed -n '/resident before, after, peak/s/.*, \([0-9.]*\) MiB:.*/\1/p' "$dir/out" | head -n 1 | also list_peak
  sed -n '/list to all targets/s/.*CPU *\([0-9.]*\) s.*/\1/p' "$dir/out" | head -n 1
}
row_start() { discover "$1" -only start | after 'start to the first profile'; }
row_delta() { "$1/tests/delta-tool" -b 500 "$dir/before" "$dir/after" | after 'median='; }
row_merge() { "$1/tests/merge-tool" -b 300 "$dir/before" "$dir/after" | after 'mean='; }
row_push() { "$1/tests/write-bench" "http://127.0.0.1:$port" 4000 30720 push | before 'us of'; }
row_otlp() { "$1/tests/write-bench" "http://127.0.0.1:$port" 2000 30720 otlp | before 'us of'; }
row_receive_push() { "$1/tests/receive-bench" 1000 30720 push | before 'ms each'; }
row_receive_otlp() { "$1/tests/receive-bench" 1000 30720 otlp | before 'ms each'; }
row_store() { put "$1" put 2000 "$dir/after" | before '.s of processor time' | awk '{ printf "%.3f\n", 1000 / $1 }'; }
row_written() { put "$1" paced "${BENCH_PACED:-10000}" '' | before 'bytes written to the disk for each profile, merging'; }
row_hour() {
  put "$1" hour "$services" '' >"$dir/out"
  sed -n 's/^\([0-9]*\) profiles of \([0-9]*\) bytes.* \([0-9]*\) bytes on the disk.*/\1 \2 \3/p' "$dir/out" |
    awk '{ printf "%.0f\n", $3 / $1 - $2 }' | also hour_more
  sed -n 's/^\([0-9]*\) profiles of .* \([0-9]*\).s of processor time.*/\1 \2/p' "$dir/out" | awk '{ printf "%.1f\n", $1 / $2 }' | also hour_put
  sed -n 's/^[0-9]* profiles of .* \([0-9]*\) bytes on the disk.*/\1/p' "$dir/out" | awk '{ printf "%.0f\n", $1 / 1e6 }' | also hour_before
  sed -n 's/^merged in .* \([0-9]*\) bytes on the disk.*/\1/p' "$dir/out" | awk '{ printf "%.0f\n", $1 / 1e6 }' | also hour_after
  sed -n 's/^summed in.*s, \([0-9.]*\) s of processor time.*/\1/p' "$dir/out" | also hour_sum
  sed -n 's/^summed in .* \([0-9]*\) bytes on the disk.*/\1/p' "$dir/out" | awk '{ printf "%.0f\n", $1 / 1e6 }' | also hour_with_sum
  sed -n 's/^merged in.*s, \([0-9.]*\) s of processor time.*/\1/p' "$dir/out"
}
row_fresh() {
  query "$1" "$services" 60
  answers fresh_one 'flame graph of one service'
  before 'KiB of memory at most' <"$dir/out" | awk '{ printf "%.0f\n", $1 / 1024 }' | also fresh_memory
  time_of 'flame graph of all' | also fresh_time
  cpu_of 'flame graph of all'
}
row_merged() {
  query "$1" "$services" 3 600
  answers merged_one 'flame graph of one service'
  time_of 'flame graph of all' | also merged_time
  cpu_of 'flame graph of all'
}
row_week() {
  query "$1" 20 "${BENCH_WEEK:-10080}" 20 600 300
  answers week_one 'flame graph of one service'
  answers week_all 'flame graph of all'
  answers week_noon_one 'one service from noon'
  answers week_noon_all 'all services from noon'
  cpu_of 'labels of all'
}
row_make() {
  source=$root
  [ "$tree" = new ] || source=$OLD
  begin=$(date +%s)
  (
    env -i PATH="$PATH" HOME="$HOME" make -s -j2 -C "$source" BUILD="$dir/make" >/dev/null
    times
  ) | sed -n '$s/[ms]/ /gp' | awk '{ printf "%.0f\n", 60 * ($1 + $3) + $2 + $4 }'
  echo $(($(date +%s) - begin)) | also make_time
  rm -rf "$dir/make"
}

table() {
  while IFS='|' read -r row most unit what; do
    echo "$row" | grep -qE "$rows" || continue
    touch "$dir/new.$row" "$dir/old.$row"
    run=0
    while [ "$run" -lt "$runs" ] && [ "$run" -lt "$most" ]; do
      run=$((run + 1))
      tree=old
      [ -z "$old" ] || "row_$row" "$old" >>"$dir/old.$row" 2>>"$dir/errors" </dev/null || true
      tree=new
      "row_$row" "$build" >>"$dir/new.$row" 2>>"$dir/errors" </dev/null || true
    done
    now=$(median <"$dir/new.$row")
    was=$(median <"$dir/old.$row")
    awk -v what="$what" -v unit="$unit" -v now="$now" -v was="$was" 'BEGIN {
      ratio = now + 0 > 0 && was + 0 > 0 ? sprintf("%.2f", now / was) : "-"
      printf "%-66s %10s %10s %6s  %s\n", what, was, now, ratio, unit }'
  done
}

echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
printf '%-66s %10s %10s %6s\n' "medians of up to $runs runs, processor time unless it says otherwise" before now ratio
# The row's name, the greatest number of runs (0: the row above has its figure), unit, text.
table <<EOF
scrape|3|s|1,000 targets x 5 types, deltas of all that grow: 1,000 profiles
scrape_bare|0||  ratio to a bare loop of libcurl that passes them on
scrape_resident|0|MiB|  resident memory after it
away|1|% of a core|the destination of these targets is away for $down s
away_peak|0|MiB|  peak of resident memory
away_arrived|0|%|  growth of the counters that has arrived in the end
away_first|0|s|  time from its return to the first profile
list|3|s|10,000 pods, all kept: the first list
list_peak|0|MiB|  peak of resident memory
start|3|s|10,000 pods: time from the start to the first profile
delta|5|ms|delta of a heap of 103 KB (36 KB gzip)
merge|5|ms|merge of two such heaps
push|5|us|push out, a profile of 30 KB
otlp|5|us|OTLP out, gzip, a profile of 30 KB
receive_push|5|ms|push in, a profile of 30 KB
receive_otlp|5|ms|OTLP in, gzip, a profile of 30 KB
store|5|ms|store: a profile of 36 KB gzip
written|1|bytes|store: written for a profile of 13 KB, 200 a second, merging included
hour|1|s|store: merging an hour of $services services with 5 types
hour_put|0|s|  storing it
hour_before|0|MB|  on the disk, as received
hour_more|0|bytes|  on the disk for each of these, beyond its own bytes
hour_after|0|MB|  on the disk, merged
hour_sum|0|s|  making the sum of its day
hour_with_sum|0|MB|  on the disk, with the sum
fresh|1|ms|flame graph of all of $services services over an hour, as received
fresh_time|0|ms|  time that it takes
fresh_one|0|ms|  flame graph of one service
fresh_one_time|0|ms|  time that it takes
fresh_memory|0|MiB|  memory of the process, at the peak
merged|1|ms|flame graph of all of $services services over an hour, merged
merged_time|0|ms|  time that it takes
merged_one|0|ms|  flame graph of one service
merged_one_time|0|ms|  time that it takes
week|1|ms|a week of 20 services, merged: values of labels
week_one|0|ms|  flame graph of one service
week_one_time|0|ms|  time that it takes
week_all|0|ms|  flame graph of all services
week_all_time|0|ms|  time that it takes
week_noon_one|0|ms|  one service, from noon to noon (two half days by the hour)
week_noon_one_time|0|ms|  time that it takes
week_noon_all|0|ms|  all services, from noon to noon
week_noon_all_time|0|ms|  time that it takes
make|1|s|make from clean, with -j2
make_time|0|s|  time that it takes
EOF
if [ -s "$dir/errors" ] && [ -n "${V:-}" ]; then cat "$dir/errors"; fi
