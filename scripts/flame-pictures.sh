#!/bin/sh
# Draws the pictures of docs/clients.md from the output of profpull itself: terminals of 80 and 160 columns, light and dark; and
# those of docs/recipes.md, of the profiles that scripts/flame-profiles.sh makes.
# usage: flame-pictures.sh [DIRECTORY]     (docs by default; TestFlamePictures draws them again and compares)
set -eu
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
to=${1:-docs}
profile=tests/unit/data/flame/cart.pb.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$to"
tool=$work/terminalsvg
(cd tests/e2e && ${GO:-go} build -buildvcs=false -o "$tool" ./cmd/terminalsvg)
for columns in 80 160; do
    LC_ALL=C.UTF-8 "$BUILD/profpull" flame "$profile" --color true --width "$columns" --depth 16 --search compress/flate >"$work/flame.txt"
    for theme in light dark; do
        "$tool" "$theme" "$columns" <"$work/flame.txt" >"$to/flame-$columns-$theme.svg"
    done
done
for name in java cpp rust brpc; do
    LC_ALL=C.UTF-8 "$BUILD/profpull" flame "tests/unit/data/flame/$name.pb.gz" --color true --width 120 --depth 30 >"$work/flame.txt"
    "$tool" dark 120 <"$work/flame.txt" >"$to/flame-$name.svg"
done
