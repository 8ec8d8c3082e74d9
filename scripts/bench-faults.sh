#!/bin/sh
# What faults of the outside cost, with programs that are up only for this: each of scripts/faults
# is one fault. Prints figures; never fails on one.
#   scripts/bench-faults.sh [NAME...]     all of them by default
set -eu

cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  # shellcheck disable=SC2046  # a list of names
  set -- $(basename -s .sh -a scripts/faults/*.sh)
fi
for fault in "$@"; do
  echo "-- $fault"
  "scripts/faults/$fault.sh"
done
