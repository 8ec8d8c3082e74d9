#!/bin/sh
# Renders the Helm chart in many variants with Helm's engine, and the kustomizations with kustomize's, both
# Go modules, and checks the objects. Needs Go 1.22 and the module proxy, or the modules in Go's cache.
#
#   BUILD=build scripts/charts.sh
#   PROFPULL_HELM_VALUES=DIR scripts/charts.sh   # also the files of values of other charts in DIR, through `convert`
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
go=${GO:-go}
cd "$root/tests/charts" || exit 1
if ! GOTOOLCHAIN=local "$go" build -o /dev/null k8s.io/api/core/v1 helm.sh/helm/v3/pkg/engine sigs.k8s.io/kustomize/api/krusty \
  k8s.io/pod-security-admission/policy sigs.k8s.io/gateway-api/apis/v1 >/dev/null 2>&1; then
  echo "charts: skipped: the engines of Helm and kustomize cannot be built here (Go 1.22 and its modules are needed)"
  exit 0
fi
PROFPULL_BIN=$build/profpull GOTOOLCHAIN=local "$go" test -count=1 ./...
