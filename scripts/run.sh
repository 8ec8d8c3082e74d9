#!/bin/sh
# Shows profpull on real input: starts two programs on loopback, scrapes their /debug/pprof, keeps
# the profiles under DATA (./data) and says at which address they are seen, until Ctrl-C, or for
# RUN_SECONDS (0: no limit). One program is Debian's prometheus-node-exporter (unpacked under the
# build directory, nothing is installed), which has little to do; the other, tests/tools/loadgen,
# always works. Both are ended with the script.
set -eu

build=${BUILD:-build}
go=${GO:-go}
data=${DATA:-$PWD/data}
seconds=${RUN_SECONDS:-0}
listen=${LISTEN:-127.0.0.1:4041}
mkdir -p "$data" "$build"
build_path=$(cd "$build" && pwd)

./scripts/test-programs.sh prometheus-node-exporter
exporter=$(find "$build/programs" -type f -name prometheus-node-exporter | head -n 1)
log=$build/run-exporter.log
busy_log=$build/run-busy.log
profpull_log=$build/run-profpull.log
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
exporter_pid=
busy_pid=
profpull_pid=
stop() {
  for pid in $profpull_pid $exporter_pid $busy_pid; do
    kill "$pid" 2>/dev/null || true
  done
}
trap stop EXIT

# A port that is taken ends the exporter at once: try the next.
start_exporter() {
  for port in 19100 19101 19102 19103 19104 19105 19106 19107 19108 19109; do
    "$exporter" --web.listen-address="127.0.0.1:$port" >"$log" 2>&1 &
    exporter_pid=$!
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
      kill -0 "$exporter_pid" 2>/dev/null || break
      if "$build/profpull" scrape "http://127.0.0.1:$port" --type goroutine >/dev/null 2>&1; then
        return 0
      fi
      sleep 0.25
    done
    kill "$exporter_pid" 2>/dev/null || true
  done
  echo "prometheus-node-exporter did not start; its log:" >&2
  cat "$log" >&2
  return 1
}

# Burns a fifth of a core, allocates and waits for locks, in functions with names to look for.
start_busy() {
  (cd tests/tools/loadgen && GOTOOLCHAIN=local GOPROXY=off GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0 \
    "$go" build -o "$build_path/loadgen" .) || return 1
  : >"$busy_log" # what runs in the background makes it later than it is read
  "$build/loadgen" -listen 127.0.0.1:0 -busy 0.2 >"$busy_log" 2>&1 &
  busy_pid=$!
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    busy=$(sed -n 's/^listening on //p' "$busy_log")
    [ -z "$busy" ] || return 0
    sleep 0.25
  done
  echo "the busy program did not start; its log:" >&2
  cat "$busy_log" >&2
  return 1
}

# The address of the page, from what profpull says.
start_profpull() {
  : >"$profpull_log"
  "$build/profpull" run --target "busy=$busy" --target "node-exporter=127.0.0.1:$port" \
    --data "$data" --listen "$listen" 2>"$profpull_log" &
  profpull_pid=$!
  while kill -0 "$profpull_pid" 2>/dev/null; do
    address=$(sed -n 's/^profpull: profiles are shown at //p' "$profpull_log")
    [ -z "$address" ] || return 0
    sleep 0.1
  done
  echo "profpull did not start; its log:" >&2
  cat "$profpull_log" >&2
  return 1
}

# The first CPU profile has been kept: with the programs' next phases that takes 5 to 15 seconds.
wait_for_profile() {
  export PPROF_TMPDIR="$build_path/run-pprof"
  while kill -0 "$profpull_pid" 2>/dev/null; do
    if "$go" tool pprof -top -nodecount=5 "${address}api/v1/pprof?service=busy&type=$cpu" \
      >"$build/run-top.txt" 2>/dev/null; then
      return 0
    fi
    sleep 1
  done
}

start_exporter
start_busy
start_profpull
trap 'kill "$profpull_pid" 2>/dev/null' INT TERM
echo "scraping prometheus-node-exporter on 127.0.0.1:$port and a busy program on $busy into $data"
wait_for_profile
if kill -0 "$profpull_pid" 2>/dev/null; then
  echo
  echo "go tool pprof -top '${address}api/v1/pprof?service=busy&type=$cpu'"
  cat "$build/run-top.txt"
  echo
  echo "A flame graph of the busy program: ${address}?service=busy&from=now-15m"
  echo "(until Ctrl-C; the log is $profpull_log)"
fi

if [ "$seconds" -gt 0 ]; then
  # Ends early if the program does.
  left=$seconds
  while [ "$left" -gt 0 ] && kill -0 "$profpull_pid" 2>/dev/null; do
    sleep 1
    left=$((left - 1))
  done
  kill "$profpull_pid" 2>/dev/null || true
fi
# A signal ends wait early, before the program has ended.
code=0
wait "$profpull_pid" || code=$?
while kill -0 "$profpull_pid" 2>/dev/null; do
  code=0
  wait "$profpull_pid" || code=$?
done
profpull_pid=
if [ "$code" -ne 0 ]; then
  echo "profpull ended with exit code $code; its log:" >&2
  cat "$profpull_log" >&2
  exit "$code"
fi
