#!/bin/sh
# Makes the profiles of the flame graphs in docs/recipes.md: CPU profiles of one program in C++, in Rust and in Java, from gperftools
# and from the recorder of the JDK. profpull names the addresses of the first two by their build ids, from a directory.
# usage: flame-profiles.sh [DIRECTORY]     (tests/unit/data/flame by default; then make flame-pictures)
# Needs scripts/deps.sh jfr and scripts/deps.sh native. SECONDS_EACH is how long each program runs. BRPC is a directory with brpc
# as it was built (include, lib/libbrpc.a): then a server of brpc is scraped as well, and names its own addresses. Debian has no
# package; brpc's sources are built with `cmake -DWITH_DEBUG_SYMBOLS=ON` and `make brpc-static`, which make `output`.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
BUILD=$(cd "${BUILD:-build}" && pwd)
to=$(realpath "${1:-tests/unit/data/flame}")
seconds=${SECONDS_EACH:-15}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

profiler=$(ldconfig -p | awk '$1 == "libprofiler.so" { print $NF; exit }')
for tool in g++ rustc javac java "${GO:-go}" readelf; do
    command -v "$tool" >/dev/null || { echo "$0: $tool is missing: scripts/deps.sh jfr; scripts/deps.sh native" >&2; exit 1; }
done
[ -n "$profiler" ] || { echo "$0: libprofiler.so is missing: scripts/deps.sh test" >&2; exit 1; }

cat >config.yaml <<END
symbols: {directories: [$work/debug], timeout: 1m}
write: [{name: files, url: "file://$work/out", jfr: convert}]
END

# Names a profile or reads a recording, and keeps its CPU profile as NAME.pb.gz.
keep() { # NAME FILE
    rm -rf out
    "$BUILD/profpull" import --config config.yaml --quiet --name "$1" "$2"
    cp out/"$1"/process_cpu/*.pb.gz "$to/$1.pb.gz"
    ls -l "$to/$1.pb.gz"
}

# Runs a program under gperftools' profiler, whose profiles have no build ids: go tool pprof adds that of the program.
native() { # NAME
    CPUPROFILE=$work/$1.prof CPUPROFILE_FREQUENCY=250 LD_PRELOAD=$profiler "./$1" "$seconds"
    id=$(readelf -n "$1" | awk '/Build ID/ { print $3 }')
    directory=debug/.build-id/$(echo "$id" | cut -c1-2)
    mkdir -p "$directory"
    cp "$1" "$directory/$(echo "$id" | cut -c3-).debug"
    "${GO:-go}" tool pprof -proto -symbolize=none -buildid="$id" -output="$1.pb.gz" "./$1" "$1.prof"
    keep "$1" "$1.pb.gz"
}

words=$root/tests/tools/words
g++ -O2 -g "-ffile-prefix-map=$root=." "-ffile-prefix-map=$work=." -Wl,--build-id -o cpp "$words/words.cc"
native cpp
rustc -O -g --remap-path-prefix "$root=." --remap-path-prefix "$work=." -C link-arg=-Wl,--build-id -o rust "$words/words.rs"
native rust
javac -d . "$words/Words.java"
# The recorder of the JDK takes fewer samples of a thread than gperftools.
java "-XX:StartFlightRecording:filename=$work/java.jfr,settings=profile" -cp . Words "$((4 * seconds))" >/dev/null
keep java java.jfr

[ -n "${BRPC:-}" ] || { echo "$0: brpc.pb.gz stays as it is: BRPC is not set"; exit 0; }
# brpc's service knows the addresses of a program only where the linker has put it.
protoc --cpp_out=. --proto_path="$words" words.proto
g++ -O2 -g -std=c++17 -DBRPC_ENABLE_CPU_PROFILER -w -no-pie -I. -I"$BRPC/include" -o brpc-words "$words/brpc.cc" words.pb.cc \
    "$BRPC/lib/libbrpc.a" -lgflags -lprotobuf -lleveldb -lssl -lcrypto -lz -ldl -lpthread -ltcmalloc_and_profiler
cat >brpc.yaml <<END
symbols: {target: auto, wait: 10s}
scrape_configs:
  - job_name: brpc
    scrape_interval: ${seconds}s
    static_configs: [{targets: ["127.0.0.1:18765"], labels: {service_name: brpc}}]
    profiles:
      process_cpu: {path: /pprof/profile}
      memory: {enabled: false}
      block: {enabled: false}
      mutex: {enabled: false}
      goroutine: {enabled: false}
write: [{name: files, url: "file://$work/out"}]
END
rm -rf out
./brpc-words 18765 >brpc.log 2>&1 &
server=$!
trap 'kill "$server"; rm -rf "$work"' EXIT
timeout "$((3 * seconds))" "$BUILD/profpull" run --config brpc.yaml >agent.log 2>&1 || true
cp "$(find out/brpc/process_cpu -name '*.pb.gz' | sort | tail -n 1)" "$to/brpc.pb.gz"
ls -l "$to/brpc.pb.gz"
