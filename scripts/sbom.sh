#!/bin/sh
# Writes what a build of profpull consists of as SPDX 2.3 (JSON) on standard output, from what dpkg knows.
#
#   scripts/sbom.sh NAME ARCHITECTURE <PACKAGES
#
# Each line of standard input is the name of a package, as image-root.sh lists them, and may go on with
# a comment. Runs in the system that the files came from. VERSION is profpull's, SOURCE_DATE_EPOCH the time.
set -eu

if [ "$#" -ne 2 ] || [ -z "${SOURCE_DATE_EPOCH:-}" ] || [ -z "${VERSION:-}" ]; then
  sed -n '2,8p' "$0" >&2
  exit 2
fi
distro=$(
  # shellcheck source=/dev/null
  . /etc/os-release
  echo "$ID-$VERSION_ID"
)
# shellcheck disable=SC2016  # dpkg-query expands it
format='${binary:Package}\t${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}\n'
while read -r package comment; do
  printf '%s\t%s\n' "$(dpkg-query -W -f "$format" "$package")" "$comment"
done | awk -F '\t' -v name="$1" -v arch="$2" -v version="$VERSION" -v distro="$distro" \
  -v created="$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" '
  function quote(text) { gsub(/[\\"]/, "\\\\&", text); return "\"" text "\"" }
  # In URLs of packages, and where an identifier may have letters, digits, "." and "-" alone.
  function escape(text) { gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); gsub(/~/, "%7E", text); return text }
  function id(text) { gsub(/[^A-Za-z0-9.-]/, "-", text); return "SPDXRef-" text }
  function package(ref, what, its_version, source, comment, url) {
    printf "%s    {\n", (n++ ? ",\n" : "")
    printf "      \"SPDXID\": %s,\n      \"name\": %s,\n", quote(ref), quote(what)
    printf "      \"versionInfo\": %s,\n", quote(its_version)
    printf "      \"downloadLocation\": \"NOASSERTION\",\n      \"filesAnalyzed\": false,\n"
    printf "      \"licenseConcluded\": \"NOASSERTION\",\n"
    printf "      \"licenseDeclared\": %s,\n", (what == "profpull" ? "\"Apache-2.0\"" : "\"NOASSERTION\"")
    printf "      \"copyrightText\": \"NOASSERTION\""
    if (source != "") printf ",\n      \"sourceInfo\": %s", quote(source)
    if (comment != "") printf ",\n      \"comment\": %s", quote(comment)
    if (url != "") {
      printf ",\n      \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", "
      printf "\"referenceType\": \"purl\", \"referenceLocator\": %s}]", quote(url)
    }
    printf "\n    }"
  }
  BEGIN {
    full = name "-" version "-" arch
    printf "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n"
    printf "  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n  \"name\": %s,\n", quote(full)
    printf "  \"documentNamespace\": %s,\n", quote("https://profpull.invalid/spdx/" full "-" created)
    printf "  \"creationInfo\": {\"created\": %s, \"creators\": [\"Tool: profpull-sbom.sh\"]},\n", quote(created)
    printf "  \"packages\": [\n"
    package(id("profpull"), "profpull", version, "", "", "")
  }
  {
    package(id($2), $2, $3, "built from the source package " $5 " " $6, $8, \
      "pkg:deb/" substr(distro, 1, index(distro, "-") - 1) "/" escape($2) "@" escape($3) "?arch=" $4 "&distro=" distro)
    refs[++count] = id($2)
    links[count] = $8 ~ /^linked statically/ ? "STATIC_LINK" : $4 == "all" ? "DEPENDS_ON" : "DYNAMIC_LINK"
  }
  END {
    printf "\n  ],\n  \"relationships\": [\n"
    printf "    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", "
    printf "\"relatedSpdxElement\": %s}", quote(id("profpull"))
    for (i = 1; i <= count; i++) {
      printf ",\n    {\"spdxElementId\": %s, \"relationshipType\": \"%s\", \"relatedSpdxElement\": %s}", \
        quote(id("profpull")), links[i], quote(refs[i])
    }
    printf "\n  ]\n}\n"
  }'
