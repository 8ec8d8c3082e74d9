#!/bin/sh
# How late scrapes begin while a crowd of clients asks for queries over HTTP/2: 1,000 connections with 100
# requests each at a time (h2load, Debian's nghttp2-client), next to 100 targets with five profiles each every
# five seconds. Once with the default limits, and once with limits that admit the whole crowd. Each process
# is measured alone first. h2load runs at the lowest priority, since a crowd has machines of its own.
# A scrape is also late when the machine gives the thread that scrapes no core: how long that thread waited
# for one is printed, too. Prints and never fails on a time. Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-crowd.sh [SECONDS]
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh
# shellcheck source=scripts/lateness.sh
. "$(dirname "$0")/lateness.sh"
seconds=${1:-25}
port=${CROWD_PORT:-24060}
if ! command -v h2load >/dev/null 2>&1; then
  echo "bench-crowd: skipped: needs h2load (apt-get install nghttp2-client)"
  exit 0
fi
# shellcheck disable=SC3045 # dash has it
if ! ulimit -n 20000; then
  echo "bench-crowd: skipped: needs 20,000 open files"
  exit 0
fi
e2e_tool fakes
own_files

"$build/fakes" -targets 100 -shared -sizes small -cheap -sink "127.0.0.1:$((port + 2))" >"$dir/fakes" 2>"$dir/fakes.log" &
fakes=$!
while [ ! -s "$dir/fakes" ]; do
  kill -0 "$fakes" || exit 1
  sleep 0.1
done
sed -n '1s/.*"targets": *\(\[[^]]*\]\).*/[{"targets": \1}]/p' "$dir/fakes" >"$dir/targets.json"
printf '{"start":1,"end":2}' >"$dir/body"

# trial NAME LIMITS: one process, alone and with the crowd.
trial() {
  rm -rf "$dir/store"
  mkdir "$dir/store"
  cat >"$dir/profpull.yaml" <<EOF
server: {listen: "127.0.0.1:$port"}
query: {listen: "127.0.0.1:$((port + 1))"$2}
scrape_configs:
- job_name: fakes
  scrape_interval: 5s
  scrape_timeout: 4s
  profiles: {process_cpu: {enabled: false}}
  file_sd_configs: [{files: [$dir/targets.json]}]
  allow_special_address: true
write:
- {name: sink, url: "http://127.0.0.1:$((port + 2))"}
- {name: kept, url: "store://$dir/store"}
EOF
  "$build/profpull" run --config "$dir/profpull.yaml" >"$dir/log" 2>&1 &
  server=$!
  sleep 12
  begin
  sleep "$seconds"
  window "$1, alone"
  begin
  nice -n 19 timeout $((seconds + 20)) h2load -D "$seconds" -c 1000 -m 100 -d "$dir/body" \
    -H 'content-type: application/json' \
    "http://127.0.0.1:$((port + 1))/querier.v1.QuerierService/ProfileTypes" >"$dir/h2load" 2>&1 || true
  window "$1, with the crowd"
  sed -n 's/^status codes: /  answers: /p' "$dir/h2load"
  curl -sf "http://127.0.0.1:$port/metrics" |
    sed -n 's/^profpull_query_\(http2_streams_total\|connections_ended_total\|requests_refused_total\)\({.*}\) \([1-9].*\)$/  \1\2 \3/p'
  kill "$server"
  wait "$server" || true
  server=
}

trial "default limits" ""
trial "limits for all" ", max_connections: 4000, max_connections_per_address: 4000, max_streams: 65536, max_streams_per_connection: 200, max_waiting: 65536"
