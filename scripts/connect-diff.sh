#!/bin/sh
# A client of the maker of the protocol against our query APIs: connect-go with the messages that
# Pyroscope publishes (tests/connectref), in protobuf and in JSON, with and without compression. The
# answers have to be the same. It needs a new Go and its module proxy, and is skipped without.
#
#   BUILD=build scripts/connect-diff.sh
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

module_tool connectref "the modules of the client"
"$build/connectref" -server "$build/tests/query-server" -profiles "$root/tests/unit/data/merge"
