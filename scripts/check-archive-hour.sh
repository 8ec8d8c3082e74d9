#!/bin/sh
# Three sharded replicas and an hour of profiles, archived with Versity's S3 gateway over a directory, against one store
# that received the same (tests/e2e/archive_hour_test.go). The gateway is the one of check-bucket.sh; without it the
# bucket is the fake.
#
#   BUILD=build scripts/check-archive-hour.sh
set -u

BUILD=${BUILD:-build}
gateway=
for file in "$BUILD"/versitygw-v*; do
  if [ -x "$file" ]; then gateway=$file; fi
done
dir=$(mktemp -d)
pid=
stop() {
  if [ -n "$pid" ]; then kill "$pid" 2>/dev/null; wait "$pid"; fi
  rm -rf "$dir"
}
trap stop EXIT
if [ -n "$gateway" ]; then
  port=${ARCHIVE_PORT:-24090}
  mkdir -p "$dir/buckets/profiles" "$dir/metadata"
  ROOT_ACCESS_KEY=AKIDEXAMPLE ROOT_SECRET_KEY='hunter2/secret+key' "$gateway" --quiet --region eu-test-1 \
    --port "127.0.0.1:$port" posix --sidecar "$dir/metadata" "$dir/buckets" >"$dir/gateway.log" 2>&1 &
  pid=$!
  for _ in $(seq 100); do
    if curl -s -o "$dir/root" "http://127.0.0.1:$port/"; then break; fi
    sleep 0.1
  done
  ARCHIVE_S3="http://127.0.0.1:$port"
  export ARCHIVE_S3
fi
ARCHIVE_HOUR=1
export BUILD ARCHIVE_HOUR
"$(dirname "$0")/e2e.sh" -run 'TestArchiveOfAnHour$' -timeout 1h
