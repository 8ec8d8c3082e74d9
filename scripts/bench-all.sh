#!/bin/sh
# All figures of docs/benchmarks.md, on one machine: some 40 minutes, or 55 with OLD (an earlier tree, in which "make all
# tests-build" has been run), beside which the table is then printed. Prints medians, and never fails on a time.
#
#   BUILD=build OLD=/path/to/earlier/tree BENCH_OUT=FILE scripts/bench-all.sh [PART...]     all parts by default
#   scripts/bench-all.sh -list                                                            their names
#
# BENCH_OUT: the output goes into this file as well; scripts/bench-docs.sh puts it into docs/benchmarks.md.
# BENCH_SKIP: parts to leave out ("crowd names"). BENCH_ROWS: a regex of the rows of the table, such as "store|hour".
# BENCH_RUNS (5), BENCH_SECONDS (20): of the table, whose slow rows have fewer. PYROSCOPE, BENCH_PEER: programs of others, beside
# which two parts run. A part that cannot run here is skipped with a line that says why.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
export BUILD="$build"
runs=${BENCH_RUNS:-5}
few=$((runs < 3 ? runs : 3))

parts() {
  cat <<'EOF'
machine|the machine
table|what each path costs
passing|1,000 targets x 5 types, passed on without deltas
delta|one delta beside google/pprof
curve|CPU and memory over the number of targets
discovery|Kubernetes discovery of 10,000 pods
write|profiles that leave as push and ingest
otlp|profiles that leave as OTLP
receive|profiles that arrive
archive|a month in a bucket
rpc|a query over each protocol
crowd|scrapes beside a crowd of clients
names|names of native code
symbols|a debug file of 200 MB
record|recorded metrics
flame|a flame graph in the terminal
jfr|a recording of Java
faults|faults of the outside
pyroscope|the store beside Pyroscope
peer|the agent beside another one
EOF
}

part_machine() {
  echo "$(uname -srm), $(nproc) cores, $(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo) GiB of memory"
  sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
  "$build/profpull" version | sed "1s/$/ $(git -C "$root" rev-parse --short HEAD 2>/dev/null || true)/"
  [ -z "${OLD:-}" ] || echo "before: $("$OLD/build/profpull" version | head -n 1)"
  echo "$(date -u +%F), load $(cut -d ' ' -f 1-3 /proc/loadavg)"
}
part_table() { "$root/scripts/bench-table.sh" "${BENCH_ROWS:-.}"; }
part_passing() { BENCH_RUNS=$few BENCH_SECONDS=15 "$root/scripts/bench.sh" -fast 0; }
part_delta() { "$root/scripts/bench-delta.sh"; }
part_curve() {
  BENCH_RUNS=1 BENCH_SECONDS=15 BENCH_CURVE="${BENCH_CURVE:-1000 3000 10000}" BENCH_LARGE="${BENCH_LARGE-}" BENCH_PODS="${BENCH_PODS-}" \
    "$root/scripts/bench-scale.sh"
}
part_discovery() { "$root/scripts/bench-discovery.sh" -only kept -heartbeats 10s; }
part_write() { "$root/scripts/bench-write.sh" 10000; }
part_otlp() { "$root/scripts/bench-otlp.sh" 5000; }
part_receive() { "$root/scripts/bench-receive.sh" 2000; }
part_archive() { "$root/scripts/bench-archive.sh"; }
part_rpc() { "$root/scripts/bench-rpc.sh" 5000; }
part_crowd() { "$root/scripts/bench-crowd.sh" 10; }
part_names() { NAMES_RUNS=$few NAMES_SECONDS=10 "$root/scripts/bench-names.sh"; }
part_symbols() { SYMBOLS_SECONDS=10 "$root/scripts/bench-symbols.sh"; }
part_record() { BENCH_RUNS=$few BENCH_SECONDS=5 "$root/scripts/bench-record.sh"; }
part_flame() { "$root/scripts/bench-flame.sh"; }
part_jfr() {
  if ! command -v javac >/dev/null 2>&1; then
    echo "skipped: needs a JDK (scripts/deps.sh jfr)"
    return
  fi
  "$root/scripts/bench-jfr.sh"
}
part_faults() {
  FAULT_SECONDS=60 FAULT_HOSTILE_SECONDS=10 "$root/scripts/bench-faults.sh" silent hostile
  if [ "$(id -u)" -eq 0 ]; then
    BENCH_SECONDS=45 "$root/scripts/bench-faults.sh" memory
  else
    echo "-- memory: skipped: needs root, for a control group"
  fi
  echo "-- reload"
  "$root/scripts/faults/reload.sh" -time 30s
  echo "-- refusals"
  "$root/scripts/faults/refusals.sh" -time 20s
}
part_pyroscope() {
  if [ -z "${PYROSCOPE:-}" ]; then
    echo "skipped: PYROSCOPE is not set (the path of a pyroscope binary)"
    return
  fi
  "$root/scripts/bench-pyroscope.sh"
}
part_peer() {
  if [ -z "${BENCH_PEER:-}" ]; then
    echo "skipped: BENCH_PEER is not set (the path of an agent that reads Alloy's configuration)"
    return
  fi
  "$BENCH_PEER" --version 2>&1 | head -n 1
  BENCH_RUNS=$few BENCH_SECONDS=30 "$root/scripts/bench.sh" -delta auto -fast 0 -bare=
}

# among NAME NAME...: succeeds if the first is one of the others.
among() {
  name=$1
  shift
  for other in "$@"; do
    [ "$name" != "$other" ] || return 0
  done
  return 1
}

if [ "${1:-}" = -list ]; then
  parts | cut -d '|' -f 1
  exit 0
fi
all=$(parts | cut -d '|' -f 1 | tr '\n' ' ')
# shellcheck disable=SC2086 # lists of names
for part in "$@" ${BENCH_SKIP:-}; do
  among "$part" $all || {
    echo "bench-all: there is no part \"$part\"; there are: ${all% }" >&2
    exit 2
  }
done
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $all

parts | while IFS='|' read -r part title; do
  # shellcheck disable=SC2086
  if ! among "$part" "$@" || among "$part" ${BENCH_SKIP:-}; then
    continue
  fi
  begin=$(date +%s)
  echo "== $part: $title ($(date +%T), load $(cut -d ' ' -f 1 /proc/loadavg))"
  "part_$part" </dev/null || echo "$part: ended with $?"
  echo "== took $(($(date +%s) - begin)) s"
  echo
done | tee ${BENCH_OUT:+"$BENCH_OUT"}
