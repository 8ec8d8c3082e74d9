#!/bin/sh
# What names of native code cost: the first questions to a debug file of 200 MB (BIG_MB), CPU and memory of the
# child that reads it, and the same with less memory; then CPU of profiles whose names are all known, without
# and with names. Never fails on a time; fails if the file is opened more than once for its questions.
#
#   BUILD=build scripts/bench-symbols.sh
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
tool=$build/tests/symbols-tool
want=$((${BIG_MB:-200} * 1000000))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

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
