#!/bin/sh
# Kills a writer with an archive 200 times while the bucket fails in all ways (tests/e2e/archive_kills_test.go), and
# prints what was found. ARCHIVE_KILLS is the number of kills.
#
#   BUILD=build scripts/check-archive-kills.sh
set -u

BUILD=${BUILD:-build}
ARCHIVE_KILLS=${ARCHIVE_KILLS:-200}
export BUILD ARCHIVE_KILLS
exec "$(dirname "$0")/e2e.sh" -run 'TestArchiveSurvivesKills$' -timeout 4h
