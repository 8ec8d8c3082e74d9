#!/bin/sh
# SDKs of others send profiles to a profpull with rules and a store, and what the store has is compared
# with what they sent: totals by type, and names of functions (tests/sdks). In Go pyroscope-go,
# otel-profiling-go and godeltaprof; in Node.js, if node and npm are there, @pyroscope/nodejs,
# @datadog/pprof, and pprof-it with `profpull import`. What cannot be had is skipped, and named. It takes a
# minute.
#
#   BUILD=build scripts/check-sdks.sh
set -u

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"

build=${build:?} # of go-tool.sh
root=${root:?}
module_tool sdks "the SDKs for Go"

node=$build/node
if why=$(npm_modules "$node" @pyroscope/nodejs@0.6.4 @datadog/pprof@5.20.0 pprof-it@1.2.3); then
  cp "$root"/tests/sdks/node/*.js "$node"
else
  echo "check-sdks: skipped: Node.js: $why"
  node=
fi

dir=$(mktemp -d)
port=${SDKS_PORT:-24050}
cat >"$dir/profpull.yaml" <<EOF
server: {listen: "127.0.0.1:$((port + 1))"}
receive:
  listen: "127.0.0.1:$port"
  profile_relabel_configs: [{target_label: via, replacement: rules}]
scrape_configs: []
write: [{url: "store://$dir/store"}]
EOF
"$build/profpull" run --config "$dir/profpull.yaml" >"$dir/log" 2>&1 &
profpull=$!
trap 'kill $profpull 2>/dev/null; wait $profpull; rm -rf "$dir"' EXIT
await_response "$dir/log" -f "http://127.0.0.1:$((port + 1))/-/ready"
PROFPULL=$build/profpull "$build/sdks" -receive "http://127.0.0.1:$port" -query "http://127.0.0.1:$((port + 1))" ${node:+-node "$node"} || {
  grep -v level=info "$dir/log"
  exit 1
}
