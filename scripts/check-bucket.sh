#!/bin/sh
# The bucket client against Versity's S3 gateway over a directory (tests/tools/bucket_tool.c): objects,
# ranges, lists, names with odd characters, uploads in parts, many threads, refusals. The gateway is a
# Go module; it needs a new Go and its module proxy, and is skipped without.
#
#   BUILD=build scripts/check-bucket.sh
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

version=v1.8.0
gateway=$build/versitygw-$version
if [ ! -x "$gateway" ]; then
  dir=$(mktemp -d)
  if ! GOBIN="$dir" GOFLAGS=-mod=mod "$go" install "github.com/versity/versitygw/cmd/versitygw@$version" >"$build/versitygw.log" 2>&1; then
    rm -rf "$dir"
    if cannot_be_had "$build/versitygw.log"; then
      echo "check-bucket: skipped: Versity's gateway cannot be had here ($(tail -n 1 "$build/versitygw.log"))"
      exit 0
    fi
    cat "$build/versitygw.log"
    exit 1
  fi
  mv "$dir/versitygw" "$gateway"
  rm -rf "$dir"
fi

dir=$(mktemp -d)
port=${BUCKET_PORT:-24070}
mkdir -p "$dir/buckets/profiles" "$dir/metadata"
ROOT_ACCESS_KEY=AKIDEXAMPLE ROOT_SECRET_KEY='hunter2/secret+key' "$gateway" --quiet --region eu-test-1 \
  --port "127.0.0.1:$port" posix --sidecar "$dir/metadata" "$dir/buckets" >"$dir/log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null; wait $pid; rm -rf "$dir"' EXIT
await_response "$dir/log" "http://127.0.0.1:$port/"
if ! "$build/tests/bucket-tool" s3://profiles/some/prefix "http://127.0.0.1:$port" eu-test-1 AKIDEXAMPLE 'hunter2/secret+key'; then
  tail -n 20 "$dir/log"
  exit 1
fi
echo "check-bucket: passed"
