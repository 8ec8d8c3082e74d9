#!/bin/sh
# Checks the server for assistants with the client of the official Go SDK for the Model Context
# Protocol (tests/tools/mcpclient): starts a program under load, and a profpull with a store that
# scrapes it. Needs Go and the module proxy. `make mcp-check` runs it.
set -eu

build=${BUILD:-build}
dir=$(mktemp -d)
pids=
cleanup() {
  # shellcheck disable=SC2086  # a list of numbers
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

(cd tests/tools/mcpclient && "${GO:-go}" build -o "$dir/mcpclient" .)
(cd tests/tools/loadgen && "${GO:-go}" build -o "$dir/loadgen" .)
"$dir/loadgen" -listen 127.0.0.1:16060 -busy 0.2 >"$dir/loadgen.log" 2>&1 &
pids="$pids $!"
cat >"$dir/profpull.yaml" <<EOT
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: load
    static_configs: [{targets: ["127.0.0.1:16060"], labels: {service_name: load}}]
write: [{url: "store://$dir/store"}]
EOT
"$build/profpull" run --config "$dir/profpull.yaml" --listen 127.0.0.1:14041 >"$dir/profpull.log" 2>&1 &
pids="$pids $!"

# The last type to arrive is CPU.
tries=0
until curl -sf -o "$dir/cpu.pb.gz" "http://127.0.0.1:14041/pgo/load"; do
  tries=$((tries + 1))
  [ "$tries" -lt 60 ] || { cat "$dir/profpull.log" && exit 1; }
  sleep 1
done
"$dir/mcpclient" -profpull "$build/profpull" -url http://127.0.0.1:14041
