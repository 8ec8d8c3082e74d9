#!/bin/sh
# The store beside a Pyroscope server: each receives the same 20,000 profiles of 10 KB (gzip; 100 services with
# five types) at 200 a second, one server after the other, and then answers the same queries. Prints processor time,
# memory, bytes written and bytes on the disk, the time and the totals of the answers. PYROSCOPE is the path of a
# pyroscope binary; without it, profpull runs alone. Never fails on a time; fails if the totals differ.
#
#   BUILD=build PYROSCOPE=/path/to/pyroscope scripts/bench-pyroscope.sh [PROFILES [BYTES OF STACKS [RATE]]]
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh
profiles=${1:-20000}
stacks=${2:-2048}
rate=${3:-200}
port=${BENCH_PORT:-24080}
own_files

start_profpull() {
  cat >"$dir/profpull.yaml" <<EOF
server: {listen: "127.0.0.1:$((port + 1))"}
query: {listen: "127.0.0.1:$port"}
receive: {listen: "127.0.0.1:$port"}
scrape_configs: []
write: [{url: "store://$dir/data"}]
EOF
  "$build/profpull" run --config "$dir/profpull.yaml" >"$dir/log" 2>&1 &
  server=$!
  await_response "$dir/log" -f "http://127.0.0.1:$((port + 1))/-/ready"
}

# All data lies below the working directory of the server. Its limit for the data that a tenant may push in
# a second, which is below the rate of the benchmark, is raised.
start_pyroscope() {
  (cd "$dir/data" && exec "$PYROSCOPE" -server.http-listen-port="$port" -server.grpc-listen-port=$((port + 2)) \
    -distributor.ingestion-rate-limit-mb=1000 -distributor.ingestion-burst-size-mb=1000 \
    -architecture.storage=v2 -metastore.address="localhost:$((port + 2))" \
    -query-backend.address="localhost:$((port + 2))" -memberlist.bind-addr=127.0.0.1 \
    -memberlist.bind-port=$((port + 3)) -storage.backend=filesystem -usage-stats.enabled=false -self-profiling.disable-push=true -log.level=warn) >"$dir/log" 2>&1 &
  server=$!
  for _ in $(seq 360); do
    ! curl -sf "http://127.0.0.1:$port/ready" >/dev/null || return 0
    sleep 0.5
  done
  cat "$dir/log"
  exit 1
}

# ask WHAT SELECTOR: a flame graph; prints its total and the milliseconds that it took.
ask() {
  body="{\"start\":$from,\"end\":$until,\"labelSelector\":\"{$2}\",\"profileTypeID\":\"$type\"}"
  took=$(curl -s -o "$dir/answer" -w '%{time_total}' -H 'Content-Type: application/json' -d "$body" \
    "http://127.0.0.1:$port/querier.v1.QuerierService/SelectMergeStacktraces")
  total=$(grep -o '"total": *"[0-9]*"' "$dir/answer" | tr -dc 0-9)
  echo "$1: total ${total:-none}, $(echo "$took" | awk '{ printf "%.1f", $1 * 1000 }') ms"
  echo "${total:-none}" >>"$dir/totals"
}

# The type whose flame graphs are compared: the first in the order of names.
choose_type() {
  type=$(curl -s -H 'Content-Type: application/json' -d "{\"start\":$from,\"end\":$until}" \
    "http://127.0.0.1:$port/querier.v1.QuerierService/ProfileTypes" | grep -oE '"ID": *"[^"]*"' | sed 's/^"ID": *"//; s/"$//' | sort | head -n 1)
}

measure() {
  name=$1
  mkdir "$dir/data"
  "start_$name"
  : >"$dir/totals"
  from=$(($(date +%s) * 1000 - 60000))
  before=$(cpu_ms "$server")
  "$build/tests/write-bench" "http://127.0.0.1:$port" "$profiles" "$stacks" push "$rate" >"$dir/sent" || cat "$dir/sent"
  grep -o '[0-9]* bytes each' "$dir/sent" >"$dir/size"
  # Until what was received can be asked for: both write within seconds.
  sleep "${BENCH_SETTLE:-10}"
  until=$(($(date +%s) * 1000 + 60000))
  after=$(cpu_ms "$server")
  written=$(awk '/^write_bytes/ { print $2 }' "/proc/$server/io")
  choose_type
  {
    echo "$name, profiles of $(cat "$dir/size")"
    echo "  processor time of a profile: $(((after - before) * 1000 / profiles)) us"
    echo "  peak of memory: $(awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$server/status") MiB"
    echo "  written to the disk: $((written / 1000000)) MB, $((written / profiles)) bytes a profile"
    echo "  on the disk: $(du -sk "$dir/data" | awk '{ print int($1 * 1024 / 1000000) }') MB"
    echo "  type: $type"
    for _ in 1 2 3; do
      echo "  $(ask 'flame graph of one service' 'service_name=\"service-001\"')"
      echo "  $(ask 'flame graph of all' '')"
    done
  }
  kill "$server"
  wait "$server" || true
  server=
  sort -u "$dir/totals" >"$dir/totals-$name"
  rm -rf "$dir/data"
}

echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "$profiles profiles, $rate a second"
measure profpull
if [ -z "${PYROSCOPE:-}" ]; then
  echo "pyroscope: skipped: PYROSCOPE is not set (the path of a pyroscope binary)"
  exit 0
fi
measure pyroscope
if ! cmp -s "$dir/totals-profpull" "$dir/totals-pyroscope"; then
  echo "the totals differ"
  exit 1
fi
echo "equal totals"
