#!/bin/sh
# Shows the main job on real input: starts two programs on loopback, scrapes their /debug/pprof for
# RUN_SECONDS (45; 0 = until Ctrl-C) and stores the profiles under DATA (./data). One is Debian's
# prometheus-node-exporter (unpacked under the build directory, nothing is installed), which has
# little to do; the other, tests/tools/loadgen, always works. Both are ended with the script.
set -eu

build=${BUILD:-build}
go=${GO:-go}
data=${DATA:-$PWD/data}
seconds=${RUN_SECONDS:-45}
mkdir -p "$data" "$build"
build_path=$(cd "$build" && pwd)

./scripts/test-programs.sh prometheus-node-exporter
exporter=$(find "$build/programs" -type f -name prometheus-node-exporter | head -n 1)
log=$build/run-exporter.log
busy_log=$build/run-busy.log
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
  (cd tests/tools/loadgen && GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-mod=mod CGO_ENABLED=0 \
    "$go" build -o "$build_path/loadgen" .) || return 1
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

start_exporter
start_busy
echo "scraping prometheus-node-exporter on 127.0.0.1:$port and a busy program on $busy into $data"
export TARGET="127.0.0.1:$port" BUSY_TARGET="$busy" DATA="$data"
"$build/profpull" run --config examples/local.yaml &
profpull_pid=$!
trap 'kill "$profpull_pid" 2>/dev/null' INT TERM

if [ "$seconds" -gt 0 ]; then
  echo "(for $seconds seconds; RUN_SECONDS=0 runs until Ctrl-C)"
  # Ends early if the program does.
  left=$seconds
  while [ "$left" -gt 0 ] && kill -0 "$profpull_pid" 2>/dev/null; do
    sleep 1
    left=$((left - 1))
  done
  kill "$profpull_pid" 2>/dev/null || true
fi
code=0
wait "$profpull_pid" || code=$?
profpull_pid=
if [ "$code" -ne 0 ]; then
  echo "profpull ended with exit code $code" >&2
  exit "$code"
fi

echo
echo "profiles by program and type (under $data):"
for type in "$data"/node-exporter/*/ "$data"/busy/*/; do
  [ -d "$type" ] || continue
  n=$(find "$type" -name '*.pb.gz' | wc -l)
  printf '  %-30s %s\n' "${type#"$data"/}" "$n"
done
latest=$(find "$data" -path '*/busy/process_cpu/*.pb.gz' | sort | tail -n 1)
if [ -z "$latest" ]; then
  echo "no CPU profile was stored" >&2
  exit 1
fi
echo
echo "go tool pprof -top $latest"
"$go" tool pprof -top -nodecount=5 "$latest"
