#!/bin/sh
# Makes the profiles of the flame graphs in docs/recipes.md: CPU profiles of one program in C++, in Rust and in Java, from gperftools
# and from the recorder of the JDK. profpull names the addresses of the first two by their build ids, from a directory.
# usage: flame-profiles.sh [DIRECTORY]     (tests/unit/data/flame by default; then make flame-pictures)
# Needs scripts/deps.sh jfr and scripts/deps.sh native. SECONDS_EACH is how long each program runs.
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
