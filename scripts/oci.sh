#!/bin/sh
# Packs directories as one OCI image for several architectures: an image layout in a tar file, without
# a container engine. The same content gives the same bytes.
#
#   scripts/oci.sh FILE.tar ARCHITECTURE=DIRECTORY...
#
# SOURCE_DATE_EPOCH is the time of all files and of the image, VERSION and REVISION are labels.
set -eu

if [ "$#" -lt 2 ] || [ -z "${SOURCE_DATE_EPOCH:-}" ] || [ -z "${VERSION:-}" ]; then
  sed -n '2,7p' "$0" >&2
  exit 2
fi
out=$1
shift
layout=$out.layout
blobs=$layout/blobs/sha256
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
rm -rf "$layout"
mkdir -p "$blobs"

# Sorted, with one time and the numbers of the owners; format gnu keeps no other times.
pack() {
  tar -C "$1" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner -cf - .
}

# Moves a file to its place among the blobs, and prints its descriptor without the closing brace.
blob() {
  digest=$(sha256sum "$1" | cut -d ' ' -f 1)
  printf '{"mediaType":"%s","digest":"sha256:%s","size":%s' "$2" "$digest" "$(stat -c %s "$1")"
  mv "$1" "$blobs/$digest"
}

labels=$(
  cat <<END
{"org.opencontainers.image.title":"profpull","org.opencontainers.image.description":"continuous profiling by pull","org.opencontainers.image.version":"$VERSION","org.opencontainers.image.revision":"${REVISION:-}","org.opencontainers.image.created":"$created","org.opencontainers.image.licenses":"Apache-2.0"}
END
)

type=application/vnd.oci.image
manifests=
for pair; do
  arch=${pair%%=*}
  pack "${pair#*=}" >"$layout/layer.tar"
  unpacked=$(sha256sum "$layout/layer.tar" | cut -d ' ' -f 1)
  gzip -9 -n "$layout/layer.tar"
  layer="$(blob "$layout/layer.tar.gz" $type.layer.v1.tar+gzip)}"
  cat >"$layout/config" <<END
{"created":"$created","architecture":"$arch","os":"linux","config":{"User":"65532:65532","ExposedPorts":{"4041/tcp":{}},"Env":["PATH=/usr/bin","container=oci"],"Entrypoint":["/usr/bin/profpull"],"Cmd":["run","--config","/etc/profpull/profpull.yaml"],"WorkingDir":"/var/lib/profpull","StopSignal":"SIGTERM","Labels":$labels},"rootfs":{"type":"layers","diff_ids":["sha256:$unpacked"]},"history":[{"created":"$created","created_by":"scripts/oci.sh"}]}
END
  config="$(blob "$layout/config" $type.config.v1+json)}"
  cat >"$layout/manifest" <<END
{"schemaVersion":2,"mediaType":"$type.manifest.v1+json","config":$config,"layers":[$layer],"annotations":$labels}
END
  manifests="$manifests${manifests:+,}$(blob "$layout/manifest" $type.manifest.v1+json),\"platform\":{\"architecture\":\"$arch\",\"os\":\"linux\"}}"
done
cat >"$layout/index" <<END
{"schemaVersion":2,"mediaType":"$type.index.v1+json","manifests":[$manifests],"annotations":$labels}
END
index=$(blob "$layout/index" $type.index.v1+json)
printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}\n' \
  "$index" "$VERSION" >"$layout/index.json"
printf '{"imageLayoutVersion":"1.0.0"}\n' >"$layout/oci-layout"
chmod -R u=rwX,go=rX "$layout"
tar -C "$layout" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  -cf "$out" blobs index.json oci-layout
rm -rf "$layout"
