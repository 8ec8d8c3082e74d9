#!/bin/sh
# Puts the output of bench-all.sh into docs/benchmarks.md: the block after each line "<!-- bench-all: PART -->" becomes that of
# the part in FILE, which BENCH_OUT of bench-all.sh has named. A part that is not in FILE keeps its block, and is named on standard error.
#
#   scripts/bench-docs.sh FILE [PAGE]
#   scripts/bench-docs.sh -check [PAGE]     fails unless the page has each part of bench-all.sh once, and no other
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
page=${2:-$root/docs/benchmarks.md}
if [ $# -eq 0 ]; then
  echo "usage: bench-docs.sh FILE|-check [PAGE]" >&2
  exit 2
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

if [ "$1" = -check ]; then
  "$root/scripts/bench-all.sh" -list | sort >"$dir/parts"
  sed -n 's/^<!-- bench-all: \(.*\) -->$/\1/p' "$page" | sort >"$dir/marked"
  if ! diff "$dir/parts" "$dir/marked" >"$dir/diff"; then
    echo "bench-docs: parts of bench-all.sh that $page lacks (<), and parts or repetitions that bench-all.sh lacks (>):" >&2
    cat "$dir/diff" >&2
    exit 1
  fi
  exit 0
fi

# awk would take the page for the first of two files, and write an empty page.
if [ ! -s "$1" ]; then
  echo "bench-docs: $1 is empty or does not exist: $page stays as it is" >&2
  exit 1
fi

# Tabs and blanks at the end of a line are left out, and so are empty lines around the output of a part.
awk '
  FNR == NR {
    sub(/[ \t]+$/, "")
    if (/^== took /) { part = ""; next }
    if (/^== [a-z]+: /) { part = substr($2, 1, length($2) - 1); next }
    if (part == "" || ($0 == "" && !(part in text))) { next }
    if ($0 == "") { gap[part]++; next }
    if (part in text) { text[part] = text[part] "\n" }
    while (gap[part] > 0) { text[part] = text[part] "\n"; gap[part]-- }
    text[part] = text[part] $0
    next
  }
  /^<!-- bench-all: .* -->$/ {
    print
    if ($3 in text) {
      print "```text\n" text[$3] "\n```"
      dropping = 1
    } else {
      print "bench-docs: no output of the part " $3 >"/dev/stderr"
    }
    next
  }
  dropping && /^```text$/ { dropping = 2; next }
  dropping == 2 { if (/^```$/) { dropping = 0 }; next }
  { dropping = 0; print }' "$1" "$page" >"$dir/page"
cat "$dir/page" >"$page"
