#!/bin/sh
# Packs the source files as a tar file on standard output: what git knows, with changes that are not
# committed, or all of an unpacked release but build/. The same files give the same bytes.
set -eu
cd "$(dirname "$0")/.."
if [ -e .git ]; then
  # In a tree that another user owns, git refuses to answer by default.
  git -c safe.directory='*' ls-files -z
else
  find . -path ./build -prune -o -type f -print0
fi | tar --null -T - --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf -
