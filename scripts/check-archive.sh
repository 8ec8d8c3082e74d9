#!/bin/sh
# The archive of a store end to end, with Versity's S3 gateway over a directory: profiles of several stretches
# are stored and archived, the disk is wiped, and a reader with an empty disk must give the same answers. The
# gateway is the one of check-bucket.sh; without it the check is skipped.
#
#   BUILD=build scripts/check-archive.sh
set -u

build=${BUILD:-build}
gateway=
for file in "$build"/versitygw-v*; do
  if [ -x "$file" ]; then gateway=$file; fi
done
if [ -z "$gateway" ]; then
  echo "check-archive: skipped: run scripts/check-bucket.sh first, which fetches Versity's gateway"
  exit 0
fi

dir=$(mktemp -d)
port=${ARCHIVE_PORT:-24080}
pids=
stop() {
  for p in $pids; do kill "$p" 2>/dev/null; done
  wait
  rm -rf "$dir"
}
trap stop EXIT
fail() {
  echo "check-archive: $*"
  tail -n 20 "$dir"/*.log
  exit 1
}
# await WHAT COMMAND...: until the command succeeds, at most a minute
await() {
  what=$1
  shift
  for _ in $(seq 300); do
    if "$@"; then
      return
    fi
    sleep 0.2
  done
  fail "$what"
}
config() {
  cat <<END
server: {listen: "127.0.0.1:$2"}
query: {listen: "127.0.0.1:$3"}
write:
  - name: kept
    url: store://$dir/$1
    store:
      $4
      archive:
        url: s3://profiles/archive
        s3: {endpoint: "http://127.0.0.1:$port", region: eu-test-1, access_key_id: AKIDEXAMPLE, secret_access_key: hunter2}
END
}
metric() { curl -s "http://127.0.0.1:$1/metrics" | grep -q "^$2\$"; }
ask() {
  range='"start":1795300000000,"end":1795400000000'
  type='"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}"'
  for call in "LabelNames {$range}" "LabelValues {\"name\":\"service_name\",$range}" \
    "SelectMergeStacktraces {$type,$range}" "SelectSeries {$type,\"groupBy\":[\"i\"],\"step\":60,$range}" \
    "SelectMergeProfile {$type,$range}"; do
    curl -s -D - -H 'Content-Type: application/json' -d "${call#* }" \
      "http://127.0.0.1:$1/querier.v1.QuerierService/${call%% *}" | grep -iv '^date:'
  done
}

mkdir -p "$dir/buckets/profiles" "$dir/metadata"
ROOT_ACCESS_KEY=AKIDEXAMPLE ROOT_SECRET_KEY=hunter2 "$gateway" --quiet --region eu-test-1 --port "127.0.0.1:$port" \
  posix --sidecar "$dir/metadata" "$dir/buckets" >"$dir/gateway.log" 2>&1 &
gateway_pid=$!
pids=$gateway_pid
await "the gateway does not answer" curl -s -o "$dir/root" "http://127.0.0.1:$port/"

config store $((port + 1)) $((port + 2)) "stretch: 1m" >"$dir/writer.yaml"
config nowhere $((port + 3)) $((port + 4)) "read_only: true" >"$dir/reader.yaml"
for i in 0 1 2 3 4; do
  at=$((1795307400 + i * 120))
  "$build/profpull" import -q --config "$dir/writer.yaml" --name "service-$((i % 2))" --label "i=$i" --from $at \
    --until $((at + 15)) tests/unit/data/flame/cart.pb.gz || fail "import $i"
done
"$build/profpull" run -c "$dir/writer.yaml" >"$dir/writer.log" 2>&1 &
writer=$!
pids="$pids $writer"
await "the files are not archived" metric $((port + 1)) 'profpull_archive_files{endpoint="kept"} 5'
await "files wait" metric $((port + 1)) 'profpull_archive_waiting_files{endpoint="kept"} 0'
ask $((port + 2)) >"$dir/before"
kill $writer
wait $writer
rm -rf "$dir/store"

"$build/profpull" run -c "$dir/reader.yaml" >"$dir/reader.log" 2>&1 &
reader=$!
pids="$pids $reader"
await "the reader does not find the files" metric $((port + 3)) 'profpull_archive_files{endpoint="kept"} 5'
ask $((port + 4)) >"$dir/after"
grep -qi '^x-profpull-partial' "$dir/after" && fail "the answer of the reader is partial"
cmp "$dir/before" "$dir/after" || fail "the answers differ"
[ "$(wc -c <"$dir/after")" -gt 10000 ] || fail "the answers are empty"
[ ! -e "$dir/nowhere" ] || fail "the reader has made a directory"

# Without the bucket, a reader that starts says that its answers are partial.
kill $reader $gateway_pid
wait $reader $gateway_pid
"$build/profpull" run -c "$dir/reader.yaml" >"$dir/reader.log" 2>&1 &
reader=$!
pids="$reader"
await "the reader does not listen" curl -s -o "$dir/root" "http://127.0.0.1:$((port + 3))/-/healthy"
ask $((port + 4)) | grep -qi '^x-profpull-partial: 1; the objects of s3://profiles/archive have not been listed yet' ||
  fail "the answer without a bucket is not declared partial"
echo "check-archive: passed"
