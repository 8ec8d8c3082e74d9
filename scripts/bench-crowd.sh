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
dir=$(mktemp -d)
fakes=
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$fakes" ] || kill "$fakes" 2>/dev/null || true
  wait
  rm -rf "$dir"
}
trap cleanup EXIT

"$build/fakes" -targets 100 -shared -sizes small -cheap -sink "127.0.0.1:$((port + 2))" >"$dir/fakes" 2>"$dir/fakes.log" &
fakes=$!
while [ ! -s "$dir/fakes" ]; do sleep 0.1; done
sed -n '1s/.*"targets": *\(\[[^]]*\]\).*/[{"targets": \1}]/p' "$dir/fakes" >"$dir/targets.json"
printf '{"start":1,"end":2}' >"$dir/body"

buckets() {
  curl -sf "http://127.0.0.1:$port/metrics" |
    sed -n 's/^profpull_scrape_lateness_seconds_bucket{.*le="\([^"]*\)".*} \([0-9]*\)$/\1 \2/p'
}

# lateness BEFORE AFTER: quantiles of what was added between two readings, within a bucket by its share.
lateness() {
  awk '
    FNR == NR { before[$1] += $2; next }
    { if (!($1 in after)) { order[++n] = $1 } after[$1] += $2 }
    function quantile(q, i, under, below, count) {
      for (i = 1; i <= n; i++) {
        count = after[order[i]] - before[order[i]]
        if (count >= q * total) {
          if (order[i] == "+Inf") { return ">" below * 1000 }
          return sprintf("%.1f", 1000 * (below + (order[i] - below) * (q * total - under) / (count - under)))
        }
        under = count
        below = order[i]
      }
    }
    END {
      total = after["+Inf"] - before["+Inf"]
      if (total == 0) { print "no scrapes"; exit }
      printf "%d scrapes, late by p50 %s ms, p99 %s ms", total, quantile(0.5), quantile(0.99)
    }' "$1" "$2"
}

# waited: for how many ms the thread that scrapes has waited for a core since its start.
waited() {
  awk '{ printf "%d", $2 / 1000000 }' "$(dirname "$(grep -lx network "/proc/$server"/task/*/comm)")/schedstat"
}

begin() {
  buckets >"$dir/before"
  waited_before=$(waited)
}

# window NAME: prints what happened since begin.
window() {
  buckets >"$dir/after"
  printf '%-30s %s; %s ms without a core; resident %s MB, at most %s MB\n' "$1" \
    "$(lateness "$dir/before" "$dir/after")" "$(($(waited) - waited_before))" \
    "$(awk '/^VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$server/status")" \
    "$(awk '/^VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$server/status")"
}

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
