#!/bin/sh
# What a query costs over Connect, gRPC and gRPC-web: CPU time of the server for each query, over a
# small store (tests/unit/data/merge), so that the protocol is most of it. The clients are h2load's
# (Debian's nghttp2-client). Prints and never fails on a time. Figures: docs/benchmarks.md.
#
#   BUILD=build scripts/bench-rpc.sh [QUERIES]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
queries=${1:-20000}
if ! command -v h2load >/dev/null 2>&1; then
  echo "bench-rpc: skipped: needs h2load (apt-get install nghttp2-client)"
  exit 0
fi
dir=$(mktemp -d)
server=
cleanup() {
  exec 3>&-
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT
mkfifo "$dir/in"
"$build/tests/query-server" "$dir/store" "$root"/tests/unit/data/merge/p[123].pb <"$dir/in" >"$dir/port" &
server=$!
exec 3>"$dir/in"
while [ ! -s "$dir/port" ]; do sleep 0.1; done
port=$(cat "$dir/port")

# The flame graph of an hour: profile_typeID (1), label_selector (2), start (3) and end (4).
printf '\012\053process_cpu:cpu:nanoseconds:cpu:nanoseconds\022\002{}\030\340\201\240\205\240\064\040\240\253\247\205\240\064' >"$dir/message"
n=$(wc -c <"$dir/message")
{
  printf '\000\000\000\000'
  # shellcheck disable=SC2059  # a format made of one byte
  printf "\\$(printf %03o "$n")"
  cat "$dir/message"
} >"$dir/frame"

# A call of gRPC that fails has the status 200 of HTTP as well, so look once.
url=http://127.0.0.1:$port/querier.v1.QuerierService/SelectMergeStacktraces
curl -sS --max-time 20 -H 'content-type: application/grpc-web+proto' --data-binary "@$dir/frame" -o "$dir/web" "$url"
grep -aq 'grpc-status: 0' "$dir/web" || {
  echo "bench-rpc: the call fails: $(tr -d '\000' <"$dir/web")" >&2
  exit 1
}

ticks() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }
measure() { # measure NAME BODY TYPE OPTIONS...
  name=$1
  body=$2
  type=$3
  shift 3
  before=$(ticks)
  h2load -n "$queries" -c 4 "$@" -d "$body" -H "content-type: $type" \
    "$url" >"$dir/log" 2>&1
  after=$(ticks)
  grep -q "$queries succeeded" "$dir/log" || {
    cat "$dir/log"
    exit 1
  }
  awk -v name="$name" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$queries" \
    -v rate="$(sed -n 's/^finished in [^,]*, \([0-9.]*\) req.*/\1/p' "$dir/log")" \
    'BEGIN { printf "%-28s %7.1f us of CPU a query, %8.0f queries/s\n", name, ticks * 1e6 / hz / n, rate }'
}
for round in 1 2 3; do
  echo "round $round"
  measure "Connect over HTTP/1.1" "$dir/message" application/proto --h1
  measure "Connect over HTTP/2" "$dir/message" application/proto -m 4
  measure "gRPC" "$dir/frame" application/grpc+proto -m 4
  measure "gRPC-web over HTTP/1.1" "$dir/frame" application/grpc-web+proto --h1
done
