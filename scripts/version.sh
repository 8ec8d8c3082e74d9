#!/bin/sh
# Sets the version of the project in every file that names it, or checks that all name the same one.
#
#   scripts/version.sh            check: prints each place that names another version; exit code 1
#   scripts/version.sh 0.3.0      set
#
# VERSION is the source; CONTRIBUTING.md says how a release is cut.
set -eu
cd "$(dirname "$0")/.."

number='[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*'
# FILE:PATTERN, where VERSION stands for the number. Golden files of the chart follow.
places() {
  cat <<'EOF'
Dockerfile:docker build -t profpull:VERSION
Dockerfile:image.version="VERSION"
README.md:profpull:VERSION
charts/profpull/Chart.yaml:^version: VERSION
charts/profpull/Chart.yaml:^appVersion: VERSION
docs/installing.md:profpull[-_:]VERSION
docs/kubernetes.md:newTag: "VERSION"
manifests/kustomization.yaml:newTag: "VERSION"
manifests/complete/kustomization.yaml:newTag: "VERSION"
manifests/daemonset/kustomization.yaml:newTag: "VERSION"
manifests/namespaced/kustomization.yaml:newTag: "VERSION"
manifests/sharded/kustomization.yaml:newTag: "VERSION"
manifests/archived/kustomization.yaml:newTag: "VERSION"
EOF
  for golden in tests/charts/golden/*.yaml; do
    echo "$golden:profpull[-:]VERSION"
    echo "$golden:app.kubernetes.io/version: \"VERSION\""
  done
}

set_all() { # NEW
  places | while IFS=: read -r file pattern; do
    before=${pattern%%VERSION*}
    after=${pattern#*VERSION}
    sed -i "s|\\($before\\)$number\\($after\\)|\\1$1\\2|g" "$file"
  done
  echo "$1" >VERSION
}

check() {
  version=$(cat VERSION)
  wrong=$(places | while IFS=: read -r file pattern; do
    before=${pattern%%VERSION*}
    after=${pattern#*VERSION}
    grep -no "$before$number$after" "$file" | sed "s|^|$file:|" || true
  done | grep -vF "$version" || true)
  first=$(sed -n '1s/^profpull (\(.*\)) .*/\1/p' packaging/debian/changelog)
  [ "$first" = "$version" ] || wrong="$wrong
packaging/debian/changelog: the first entry is of \"$first\""
  head=$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)
  [ "$head" = "$version" ] || wrong="$wrong
CHANGELOG.md: the first version is \"$head\", expected $version"
  if [ -n "$wrong" ]; then
    echo "version.sh: VERSION is $version, but:"
    printf '%s\n' "$wrong" | sed '/^$/d'
    return 1
  fi
}

case "${1:-}" in
  '') check ;;
  [0-9]*.[0-9]*.[0-9]*) set_all "$1" && echo "set to $1; now write CHANGELOG.md and packaging/debian/changelog" ;;
  *)
    echo "usage: $0 [MAJOR.MINOR.PATCH]" >&2
    exit 2
    ;;
esac
