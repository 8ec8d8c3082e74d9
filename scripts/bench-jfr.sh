#!/bin/sh
# What reading a recording of some 12 MB costs, beside the Go parser that Pyroscope runs (tests/jfrref; needs a
# new Go and its module proxy, and is left out without): CPU, median of five runs of ten readings each, and the
# most memory of one reading, less that of reading nothing. Given recordings are joined; else one is made with a
# real JDK.
#
#   BUILD=build scripts/bench-jfr.sh [RECORDING...]
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $# -eq 0 ]; then
  jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac || echo /usr/bin/javac)")")")
  if [ ! -x "$jdk/bin/javac" ]; then
    echo "bench-jfr: needs a JDK (scripts/deps.sh jfr), or recordings as arguments" >&2
    exit 1
  fi
  "$jdk/bin/javac" -d "$work" "$root/tests/tools/Busy.java" || exit 1
  "$jdk/bin/java" "-XX:StartFlightRecording:filename=$work/one.jfr,settings=profile,jdk.ObjectAllocationInNewTLAB#enabled=true" \
    -cp "$work" Busy 20 >"$work/java.log" 2>&1 || { cat "$work/java.log"; exit 1; }
  set -- "$work/one.jfr"
fi
# A recording may have any number of chunks: recordings are repeated until there are 12 MB.
while :; do
  cat "$@" >>"$work/big.jfr"
  [ "$(stat -c %s "$work/big.jfr")" -lt 12000000 ] || break
done

figure() { sed -n "s/^$1 //p"; }
# median_cpu COMMAND...: ms for one reading.
median_cpu() {
  for _ in 1 2 3 4 5; do
    "$@" "$work/big.jfr" | figure cpu_ms
  done | sort -n | sed -n 3p
}

"$build/profpull" jfr --json "$work/big.jfr" >"$work/facts.json" || exit 1
chunks=$(grep -o '"version"' "$work/facts.json" | wc -l)
largest=$(grep -o '"size":[0-9]*' "$work/facts.json" | cut -d: -f2 | sort -n | tail -n 1)
echo "recording:  $(stat -c %s "$work/big.jfr") bytes, $chunks chunks, the largest of $largest bytes"
: >"$work/empty.jfr"
idle=$("$build/tests/jfr-tool" sums "$work/empty.jfr" | figure max_rss_kb)
most=$("$build/tests/jfr-tool" sums "$work/big.jfr" | figure max_rss_kb)
ours=$(median_cpu "$build/tests/jfr-tool" sums -10)
echo "profpull:   $ours ms of CPU, $((most - idle)) KB of memory, $(((most - idle) * 102400 / largest)) % of the largest chunk"
module_tool jfrref "Pyroscope's parser"
theirs=$(median_cpu "$build/jfrref" -times 10)
rss=$("$build/jfrref" "$work/big.jfr" | figure max_rss_kb)
echo "jfr-parser: $theirs ms of CPU, $rss KB of memory in all"
echo "ratio:      $(awk "BEGIN { printf \"%.2f\", $ours / $theirs }") of its CPU"
