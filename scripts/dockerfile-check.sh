#!/bin/sh
# Builds the Dockerfile without a registry, and runs the program of its image as the image's user. The base
# image is a Debian system made from packages, with apt's sources where Debian's images have them. Needs
# root, scripts/deps.sh release, and buildah.
#
#   BUILD=build scripts/dockerfile-check.sh
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"
debian_needs "$(dpkg --print-architecture)"
command -v buildah >/dev/null 2>&1 || { echo "$0: not found: buildah; apt-get install buildah" >&2 && exit 1; }

store=$build/dockerfile
images() {
  buildah --root "$store/images" --runroot "$store/run" --storage-driver vfs "$@"
}
# Each step is a copy of the whole image.
trap 'images rm --all >/dev/null; images rmi --all --force >/dev/null; rm -rf "$store/images" "$store/run"' EXIT

debian_make "$store/base" bookworm "$(dpkg --print-architecture)" ca-certificates
rm -f "$store/base/etc/apt/sources.list"
cat >"$store/base/etc/apt/sources.list.d/debian.sources" <<EOT
Types: deb
URIs: $debian_mirror/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: $debian_mirror/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOT
base=$(images from scratch)
images add --quiet "$base" "$store/base" / >/dev/null
images commit --quiet "$base" docker.io/library/debian:bookworm-slim >/dev/null
images build --isolation chroot --network host --pull-never --tag profpull:check "$root"

ours=$(images from --pull-never localhost/profpull:check)
images copy --quiet "$ours" "$root/examples/kubernetes.yaml" /etc/profpull/profpull.yaml >/dev/null
user=$(images inspect --type container --format '{{.OCIv1.Config.User}}' "$ours")
for command in version "check --config /etc/profpull/profpull.yaml"; do
  # shellcheck disable=SC2086  # several words
  images run --isolation chroot --cap-drop all --user "$user" "$ours" -- /usr/bin/profpull $command
done
# Its working directory is writable.
images run --isolation chroot --cap-drop all --user "$user" "$ours" -- \
  /usr/bin/profpull run --target 127.0.0.1:9 --listen "" --for 1s
echo "dockerfile-check: 3 passed, 0 failed"
