#!/bin/sh
# OpenTelemetry's own programs send profiles to a profpull with a store, and the store has what they sent, by
# type and function: the client that is generated from OpenTelemetry's messages (tests/otlpclient), over gRPC
# and HTTP, without and with TLS; and a real Collector (tests/otelcol), which sends over gRPC and over HTTP, and
# receives from another profpull. OTELCOL is the path of a Collector (0.160 or later) to use instead. The script
# needs a new Go and its module proxy, and is skipped without.
#
#   BUILD=build [OTELCOL=otelcol] scripts/check-otlp.sh
set -u

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
build=${build:?} # of go-tool.sh

module_tool otlpclient "the published messages"
otelcol=${OTELCOL:-}
if [ -z "$otelcol" ]; then
  module_tool otelcol "the Collector"
  otelcol=$build/otelcol
fi

dir=$(mktemp -d)
port=${OTLP_PORT:-24080}
pids=
cleanup() {
  for pid in $pids; do kill "$pid" 2>/dev/null; done
  wait
  rm -rf "$dir"
}
trap cleanup EXIT

# start NAME ADMIN_PORT: a profpull with NAME.yaml, until it is ready.
start() {
  "$build/profpull" run --config "$dir/$1.yaml" >"$dir/$1.log" 2>&1 &
  pids="$pids $!"
  await_response "$dir/$1.log" -f "http://127.0.0.1:$2/-/ready"
}

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
  -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null || {
  echo "check-otlp: openssl cannot make a certificate"
  exit 1
}
mkdir "$dir/plain.store" "$dir/tls.store"
cat >"$dir/plain.yaml" <<EOF
server: {listen: "127.0.0.1:$port"}
receive: {listen: "127.0.0.1:$((port + 1))"}
scrape_configs: []
write: [{url: "store://$dir/plain.store"}]
EOF
cat >"$dir/tls.yaml" <<EOF
server: {listen: "127.0.0.1:$((port + 2))"}
receive: {listen: "127.0.0.1:$((port + 3))", tls: {cert_file: "$dir/cert.pem", key_file: "$dir/key.pem"}}
scrape_configs: []
write: [{url: "store://$dir/tls.store"}]
EOF
cat >"$dir/sender.yaml" <<EOF
server: {listen: "127.0.0.1:$((port + 4))"}
receive: {listen: "127.0.0.1:$((port + 5))"}
scrape_configs: []
write: [{url: "http://127.0.0.1:$((port + 8))", protocol: otlp}]
EOF
cat >"$dir/collector.yaml" <<EOF
receivers:
  otlp/1: {protocols: {grpc: {endpoint: "127.0.0.1:$((port + 6))"}}}
  otlp/2: {protocols: {grpc: {endpoint: "127.0.0.1:$((port + 7))"}}}
  otlp/profpull: {protocols: {http: {endpoint: "127.0.0.1:$((port + 8))"}}}
exporters:
  otlp: {endpoint: "127.0.0.1:$((port + 1))", tls: {insecure: true}}
  otlphttp: {endpoint: "http://127.0.0.1:$((port + 1))"}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles/grpc: {receivers: [otlp/1], exporters: [otlp]}
    profiles/http: {receivers: [otlp/2], exporters: [otlphttp]}
    profiles/profpull: {receivers: [otlp/profpull], exporters: [otlp]}
EOF
start plain "$port"
start tls $((port + 2))
start sender $((port + 4))
"$otelcol" --config "file:$dir/collector.yaml" --feature-gates=service.profilesSupport >"$dir/collector.log" 2>&1 &
pids="$pids $!"
"$build/otlpclient" -plain "127.0.0.1:$((port + 1))" -query "http://127.0.0.1:$port" -ca "$dir/cert.pem" \
  -tls "127.0.0.1:$((port + 3))" -tls-query "http://127.0.0.1:$((port + 2))" \
  -collector-grpc "127.0.0.1:$((port + 6))" -collector-http "127.0.0.1:$((port + 7))" \
  -profpull "http://127.0.0.1:$((port + 5))" || {
  cat "$dir/collector.log"
  grep -hv level=info "$dir"/*.log
  exit 1
}
