#!/bin/sh
# Checks the server for assistants with official clients of the Model Context Protocol: starts a
# program under load, and a profpull with a store that scrapes it.
#
#   scripts/mcp-check.sh              the client of the Go SDK (tests/tools/mcpclient); needs Go and the
#                                     module proxy. `make mcp-check` runs it.
#   scripts/mcp-check.sh conformance  the conformance suite, with the scenarios that do not apply
#                                     (tests/tools/mcp-conformance.yaml), and the inspector's command line;
#                                     needs npm as well. `make mcp-conformance` runs it.
set -eu

build=${BUILD:-build}
what=${1:-go}
conformance=0.1.16
inspector=0.15.0
dir=$(mktemp -d)
pids=
cleanup() {
  # shellcheck disable=SC2086  # a list of numbers
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# The suite needs Node.js 22; npm has that, too.
if [ "$what" = conformance ]; then
  echo '{"private": true}' >"$dir/package.json"
  npm install --silent --no-fund --no-audit --prefix "$dir" node@22 \
    "@modelcontextprotocol/conformance@$conformance" "@modelcontextprotocol/inspector@$inspector" >"$dir/npm.log" 2>&1 ||
    { cat "$dir/npm.log" && exit 1; }
  PATH="$dir/node_modules/node/bin:$dir/node_modules/.bin:$PATH"
else
  (cd tests/tools/mcpclient && "${GO:-go}" build -buildvcs=false -o "$dir/mcpclient" .)
fi
(cd tests/tools/loadgen && "${GO:-go}" build -buildvcs=false -o "$dir/loadgen" .)
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
url=http://127.0.0.1:14041
if [ "$what" != conformance ]; then
  "$dir/mcpclient" -profpull "$build/profpull" -url "$url"
  exit
fi

# The suite ends with 1 for a failure that is not expected, and for an expected one that has passed.
conformance server --url "$url/mcp" --output-dir "$dir/results" \
  --expected-failures tests/tools/mcp-conformance.yaml >"$dir/conformance.log" 2>&1 ||
  { cat "$dir/conformance.log" && exit 1; }
sed -n '/=== SUMMARY/,$p' "$dir/conformance.log"

# inspect NAME WANTED ARGUMENT...: asks with the inspector's command line, and checks the answer.
inspect() {
  name=$1
  wanted=$2
  shift 2
  mcp-inspector --cli "$@" >"$dir/inspector.json" 2>&1 || { cat "$dir/inspector.json" && exit 1; }
  grep -q "$wanted" "$dir/inspector.json" || { echo "inspector, $name: no $wanted in:" && cat "$dir/inspector.json" && exit 1; }
  echo "inspector, $name: ok"
}
inspect "tools over HTTP" top_functions "$url/mcp" --transport http --method tools/list
inspect "a call over HTTP" 'load: ' "$url/mcp" --transport http --method tools/call --tool-name list_services
inspect "tools over standard input" top_functions "$build/profpull" mcp --url "$url" --method tools/list
inspect "a call over standard input" 'main\.' "$build/profpull" mcp --url "$url" --method tools/call \
  --tool-name top_functions --tool-arg service=load
