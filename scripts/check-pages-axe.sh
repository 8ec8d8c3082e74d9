#!/bin/sh
# axe-core checks each page that the tests of pages open in Chromium: labels, contrast, structure. Any violation
# fails. What cannot be had is named, and the check is skipped. It takes some minutes.
#
#   BUILD=build scripts/check-pages-axe.sh
set -u

# shellcheck source=scripts/go-tool.sh disable=SC1091
. "$(dirname "$0")/go-tool.sh"

build=${build:?} # of go-tool.sh
root=${root:?}
if ! why=$(npm_modules "$build/axe" axe-core@4.14.1); then
  echo "check-pages-axe: skipped: $why"
  exit 0
fi
# The pages need none of Debian's programs.
PROFPULL_AXE=$build/axe/node_modules/axe-core/axe.min.js PROFPULL_WITHOUT_PROGRAMS=1 BUILD=$build \
  exec "$root/scripts/e2e.sh" -run '^Test(AccessiblePages|ChangesPage|Overview|Pages|HostileNames|DroppedTargets)$'
