#!/bin/sh
# Makes a recording with a real JDK (17, else what java is there) and compares the profiles that are made of it
# with its events, as the JDK's own reader prints them: every stack and value of every event. Recordings can be
# given as well, with the period of their execution samples in ms in JFR_PERIOD (10). scripts/deps.sh jfr
# installs the JDK.
#
#   BUILD=build scripts/check-jfr.sh [RECORDING...]
set -u

# shellcheck source=scripts/go-tool.sh
. "$(dirname "$0")/go-tool.sh"

# The newest JDK that is asked for first.
for dir in /usr/lib/jvm/java-17-openjdk-* /usr/lib/jvm/java-21-openjdk-* ${JAVA_HOME:+"$JAVA_HOME"}; do
  if [ -x "$dir/bin/java" ] && [ -x "$dir/bin/javac" ] && [ -x "$dir/bin/jfr" ]; then
    jdk=$dir
    break
  fi
done
if [ -z "${jdk:-}" ]; then
  echo "check-jfr: needs a JDK: scripts/deps.sh jfr" >&2
  exit 1
fi
e2e_tool jfrcheck
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$jdk/bin/javac" -d "$work" "$root/tests/tools/Busy.java" || exit 1
# What the settings "profile" leave out is enabled; locks and parks count from 10 ms.
options="filename=$work/busy.jfr,settings=profile"
options="$options,jdk.ObjectAllocationInNewTLAB#enabled=true,jdk.ObjectAllocationInNewTLAB#stackTrace=true"
options="$options,jdk.ObjectAllocationOutsideTLAB#enabled=true,jdk.ObjectAllocationOutsideTLAB#stackTrace=true"
options="$options,jdk.JavaMonitorEnter#threshold=10ms,jdk.ThreadPark#threshold=10ms,jdk.ExecutionSample#period=10ms"
if ! "$jdk/bin/java" "-XX:StartFlightRecording:$options" -cp "$work" Busy "${JFR_SECONDS:-5}" >"$work/java.log" 2>&1; then
  cat "$work/java.log"
  exit 1
fi
"$build/jfrcheck" -tool "$build/tests/jfr-tool" -jfr "$jdk/bin/jfr" -period "${JFR_PERIOD:-10}" "$work/busy.jfr" "$@"
