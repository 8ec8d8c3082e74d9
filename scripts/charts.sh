#!/bin/sh
# Renders the Helm chart in many variants with Helm's engine, a Go module, and checks the objects.
# Needs Go 1.22 and the module proxy, or the modules in Go's cache.
#
#   BUILD=build scripts/charts.sh
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
cd "$root/tests/charts" || exit 1
if ! GOTOOLCHAIN=local "$go" build -o /dev/null k8s.io/api/core/v1 helm.sh/helm/v3/pkg/engine >/dev/null 2>&1; then
  echo "charts: skipped: Helm's engine cannot be built here (Go 1.22 and its modules are needed)"
  exit 0
fi
PROFPULL_BIN=$build/profpull GOTOOLCHAIN=local "$go" test -count=1 ./...
