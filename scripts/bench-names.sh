#!/bin/sh
# What names of addresses cost the whole process: 300 native profiles a second (NAMES_TARGETS, each scraped every second) are fetched
# from programs on loopback and pushed to a server that only counts. Kinds: CPU profiles of gperftools, with 500 addresses that the
# program's own symbol service names; and pprof with a build id, whose 500 addresses get names, inlined functions, files and lines from
# a directory. Of these, "few" has some 300 inlined frames, as many for each address as in brpc's base library (0.5), and "pprof" has
# 1,500, more than in small programs of templates or iterators (C++: 2.0 for each address, Rust: 2.9). Ways, by turns, NAMES_RUNS (3)
# times for NAMES_SECONDS (15): without sources of names, so that addresses are named by their place in the file; and with sources, all
# names being known. PLAIN names a profpull that changes no profile, as a third way.
# Prints user and system CPU of the process for each profile that arrived, as medians. Never fails on a time.
#
#   BUILD=build scripts/bench-names.sh
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
root=${root:?} build=${build:?} # of go-tool.sh
runs=${NAMES_RUNS:-3}
seconds=${NAMES_SECONDS:-15}
port=${NAMES_PORT:-24110}
e2e_tool natives
own_files
cd "$dir"

# pinned CORE COMMAND...: on one core, if there are two.
pinned() {
  core=$1
  shift
  if [ "$(nproc)" -gt 1 ]; then set -- taskset -c "$core" "$@"; fi
  exec "$@"
}

programs=$root/tests/unit/symbols/programs
mkdir debug
segment() { readelf -lW library.so | sed -n "s/^  LOAD  *0x\\([0-9a-f]*\\) 0x\\([0-9a-f]*\\) [^ ]* [^ ]* 0x\\([0-9a-f]*\\) R E .*/\\$1/p"; }

# make_profile FLAG NAME: a library, and NAME.pb.gz, a profile of addresses that are spread over its code.
make_profile() {
  g++ "$1" -g -fPIC -shared -Wl,--build-id -o library.so "$programs/main.cc" "$programs/round.cc" "$programs/sums.cc"
  id=$(readelf -n library.so | sed -n 's/.*Build ID: //p')
  file=$(echo "$id" | sed 's|^..|&/|').debug
  text=$(readelf -SW library.so | sed -n 's/.* \.text  *PROGBITS  *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/0x\1 0x\2/p')
  i=0
  while [ "$i" -lt 500 ]; do
    printf '%x\n' $((${text% *} + ${text#* } * i / 500))
    i=$((i + 1))
  done | "$build/tests/naming-bench" profile "$id" "$(segment 2)" "$(printf '%x' $((0x$(segment 2) + 0x$(segment 3))))" "$(segment 1)" |
    gzip >"$2.pb.gz"
  mkdir -p "debug/.build-id/${file%/*}"
  mv library.so "debug/.build-id/$file"
}

make_profile -O2 native
make_profile -Og few
"$build/tests/naming-bench" cpu >cpu.prof
"$build/tests/naming-bench" names >names.txt

(pinned 1 "$build/natives" -dir "$dir" -targets "${NAMES_TARGETS:-300}" -sink "127.0.0.1:$((port + 1))" >targets.json) &
fakes=$!
while [ ! -s targets.json ]; do
  kill -0 "$fakes" || exit 1
  sleep 0.1
done

# configure KIND SYMBOLS
configure() {
  path=/pprof/profile
  [ "$1" != pprof ] || path=/debug/pprof/native
  [ "$1" != few ] || path=/debug/pprof/few
  cat <<EOF
server: {listen: "127.0.0.1:$port"}
symbols: $2
scrape_configs:
- job_name: natives
  scrape_interval: 1s
  scrape_timeout: 900ms
  profiles:
    memory: {enabled: false}
    block: {enabled: false}
    goroutine: {enabled: false}
    mutex: {enabled: false}
    process_cpu: {enabled: false}
    custom: [{name: native, path: $path}]
  file_sd_configs: [{files: [$dir/targets.json]}]
  allow_special_address: true
write:
- {name: sink, url: "http://127.0.0.1:$((port + 1))"}
EOF
}

# Profiles that have arrived, bytes sent, and processor time in ms, so far.
reading() {
  curl -sf "http://127.0.0.1:$port/metrics" | awk '
    /^profpull_write_sent_profiles_total/ { n += $2 }
    /^profpull_write_sent_bytes_total/ { bytes += $2 }
    END { printf "%d %d ", n, bytes }'
  cpu_ms "$server"
}

# run PROGRAM KIND SYMBOLS: one run. Prints us of processor time for each profile, their number, and the bytes of one.
run() {
  configure "$2" "$3" >profpull.yaml
  (pinned 0 "$1" run --config profpull.yaml >log 2>&1) &
  server=$!
  sleep 8
  before=$(reading)
  sleep "$seconds"
  echo "$before $(reading)" | awk '{ n = $4 - $1; if (n == 0) exit 1; printf "%.1f %d %d\n", ($6 - $3) * 1000 / n, n, ($5 - $2) / n }'
  kill "$server"
  wait "$server" || true
  server=
}

echo "$(uname -sr), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
i=0
while [ "$i" -lt "$runs" ]; do
  i=$((i + 1))
  for kind in gperftools few pprof; do
    [ -z "${PLAIN:-}" ] || run "$PLAIN" "$kind" "{target: off}" >>"$kind.plain"
    run "$build/profpull" "$kind" "{target: off}" >>"$kind.off"
    run "$build/profpull" "$kind" "{target: auto, directories: [$dir/debug]}" >>"$kind.on"
  done
done
# median FILE: the line with the median.
median() { sort -n "$1" | awk '{ line[NR] = $0 } END { print line[int((NR + 1) / 2)] }'; }
for kind in gperftools few pprof; do
  echo "$kind"
  for way in plain off on; do
    [ -s "$kind.$way" ] || continue
    case $way in plain) title="unchanged" ;; off) title="without sources" ;; on) title="with names" ;; esac
    echo "$(median "$kind.$way") $(median "$kind.off") $(sort -n "$kind.$way" | sed -n '1s/ .*//p') $(sort -n "$kind.$way" | sed -n '$s/ .*//p')" |
      awk -v title="$title" '{ printf "  %-16s %6.1f us (%.1f to %.1f), ratio %.3f; %d bytes each, %d profiles\n", title, $1, $7, $8, $1 / $4, $3, $2 }'
  done
done
