#!/bin/sh
# What names of native code cost: the first questions to a debug file of 200 MB (BIG_MB), CPU and memory of the
# child that reads it, and the same with less memory; CPU of profiles whose names are all known, without and with
# names; and how late scrapes begin while such a file is read. Never fails on a time; fails if the file is opened more than once for its questions.
#
#   BUILD=build scripts/bench-symbols.sh
set -eu

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"
# shellcheck source=scripts/lateness.sh disable=SC1091
. "$(dirname "$0")/lateness.sh"
root=${root:?} build=${build:?} # of go-tool.sh
tool=$build/tests/symbols-tool
want=$((${BIG_MB:-200} * 1000000))
port=${SYMBOLS_PORT:-24100}
seconds=${SYMBOLS_SECONDS:-15}
e2e_tool fakes
own_files
cd "$dir"

# One unit is compiled, and copied under other names until they come to the size.
g++ -std=c++17 -O2 -g -fPIC -c "$root/tests/tools/bigcode/unit.cc" -o unit.o
# Without its relocations, a unit in the library is some 38 % of its object.
copies=$((want * 100 / 38 / $(stat -c %s unit.o) + 1))
i=0
while [ "$i" -lt "$copies" ]; do
  objcopy --prefix-symbols="u${i}_" unit.o "u$i.o"
  echo "char u${i}___dso_handle __attribute__((visibility(\"hidden\")));" >>handles.c
  i=$((i + 1))
done
gcc -fPIC -c handles.c -o handles.o
gcc -shared -nostdlib -Wl,--unresolved-symbols=ignore-all -o libbig.so handles.o u*.o
rm -f u*.o
echo "file_bytes=$(stat -c %s libbig.so) units=$copies"

# addresses COUNT: so many addresses, spread over the code.
text=$(readelf -SW libbig.so | sed -n 's/.* \.text  *PROGBITS  *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/0x\1 0x\2/p')
addresses() {
  i=0
  while [ "$i" -lt "$1" ]; do
    printf '%x\n' $((${text% *} + ${text#* } * i / $1))
    i=$((i + 1))
  done
}

for count in 1 100 1000; do
  addresses "$count" >list
  echo "the first question, and the second:"
  "$tool" -t libbig.so <list | tee figures
  grep -qx 'opened=1' figures || { echo "bench-symbols: the file was not opened once" >&2 && exit 1; }
done
for memory in 100000000 500000000 1000000000; do
  echo "with $memory bytes of memory:"
  "$tool" -t -l "$memory" libbig.so <list 2>&1 || true
done

echo "a profile, all names known:"
"$build/tests/naming-bench"

# A pushed profile has addresses in the file, which the process has not read yet, next to 100 targets.
id=$(readelf -n libbig.so | sed -n 's/.*Build ID: //p')
file=$(echo "$id" | sed 's|^..|&/|').debug
mkdir -p "debug/.build-id/${file%/*}"
segment() { readelf -lW libbig.so | sed -n "s/^  LOAD  *0x\\([0-9a-f]*\\) 0x\\([0-9a-f]*\\) [^ ]* [^ ]* 0x\\([0-9a-f]*\\) R E .*/\\$1/p"; }
"$build/tests/naming-bench" profile "$id" "$(segment 2)" "$(printf '%x' $((0x$(segment 2) + 0x$(segment 3))))" "$(segment 1)" \
  <list | gzip >profile.pb.gz
mv libbig.so "debug/.build-id/$file"
"$build/fakes" -targets 100 -shared -sizes small -cheap -sink "127.0.0.1:$((port + 2))" >fakes.json 2>fakes.log &
fakes=$!
while [ ! -s fakes.json ]; do
  kill -0 "$fakes" || exit 1
  sleep 0.1
done
sed -n '1s/.*"targets": *\(\[[^]]*\]\).*/[{"targets": \1}]/p' fakes.json >targets.json
cat >profpull.yaml <<EOF
server: {listen: "127.0.0.1:$port"}
receive: {listen: "127.0.0.1:$((port + 1))"}
symbols: {directories: [$dir/debug]}
scrape_configs:
- job_name: fakes
  scrape_interval: 5s
  scrape_timeout: 4s
  profiles: {process_cpu: {enabled: false}}
  file_sd_configs: [{files: [$dir/targets.json]}]
  allow_special_address: true
write:
- {name: sink, url: "http://127.0.0.1:$((port + 2))"}
EOF
"$build/profpull" run --config profpull.yaml >log 2>&1 &
server=$!
sleep 12
begin
sleep "$seconds"
window "scrapes alone"
begin
curl -sf --data-binary @profile.pb.gz "http://127.0.0.1:$((port + 1))/v1/pprof?service_name=big"
sleep "$seconds"
window "scrapes, and a cold file"
curl -sf "http://127.0.0.1:$port/metrics" |
  sed -n 's/^profpull_symbols_\(opened_total\|found_total\|failures_total\)\({.*}\)\{0,1\} \([1-9].*\)$/  \1\2 \3/p'
