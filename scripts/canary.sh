#!/bin/sh
# Runs the prober of Grafana Pyroscope against a profpull that receives, stores and answers: `profilecli
# canary-exporter` pushes and asks in rounds, over Connect, gRPC and OTLP. Fails if a probe fails in any round, or if one is
# missing. CANARY_EXPORTER is the path of a profilecli; without it, one in PATH is used. The time is SECONDS
# (60), with a round every 15 seconds.
#
#   BUILD=build CANARY_EXPORTER=profilecli scripts/canary.sh [SECONDS]
set -u

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh
canary=${CANARY_EXPORTER:-profilecli}
seconds=${1:-${CANARY_SECONDS:-60}}
port=${CANARY_PORT:-24070}
# Each round has so many probes.
probes=16

if ! command -v "$canary" >/dev/null 2>&1; then
  echo "canary: skipped: $canary is missing (set CANARY_EXPORTER to a profilecli of Grafana Pyroscope)"
  exit 0
fi
dir=$(mktemp -d)
profpull=
exporter=
cleanup() {
  [ -z "$exporter" ] || kill "$exporter" 2>/dev/null
  [ -z "$profpull" ] || kill "$profpull" 2>/dev/null
  wait
  rm -rf "$dir"
}
trap cleanup EXIT
mkdir "$dir/store"
cat >"$dir/profpull.yaml" <<EOF
server: {listen: "127.0.0.1:$port"}
query: {listen: "127.0.0.1:$((port + 1))"}
receive: {listen: "127.0.0.1:$((port + 1))"}
scrape_configs: []
write: [{url: "store://$dir/store"}]
EOF
"$build/profpull" run --config "$dir/profpull.yaml" >"$dir/log" 2>&1 &
profpull=$!
await_response "$dir/log" -f "http://127.0.0.1:$port/-/ready"
"$canary" canary-exporter --listen-address="127.0.0.1:$((port + 2))" --url "http://127.0.0.1:$((port + 1))" \
  --query-probe-set=all --test-frequency=15s >"$dir/canary" 2>&1 &
exporter=$!
sleep "$seconds"
curl -s "http://127.0.0.1:$((port + 2))/metrics" | grep '^probe_success' >"$dir/last"
good=$(grep -c 'msg="probe successful"' "$dir/canary")
bad=$(grep -cE 'level=(error|warn)' "$dir/canary")
passing=$(grep -c ' 1$' "$dir/last")
echo "canary: $passing of $probes probes pass in the last round; in all rounds $good passed, $bad failed"
if [ "$passing" != "$probes" ] || [ "$bad" != 0 ] || [ "$(wc -l <"$dir/last")" != "$probes" ]; then
  cat "$dir/last"
  grep -E 'level=(error|warn)' "$dir/canary" | head -20
  exit 1
fi
