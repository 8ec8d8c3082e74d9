#!/bin/sh
# Collects what an image of profpull holds into a directory: the program, the shared libraries that it
# needs with their copyright files, CA certificates, a user without rights. No shell, no package manager.
#
#   scripts/image-root.sh DIRECTORY PROGRAM [ARCHITECTURE]
#
# Runs on Debian, as root, beside the libraries that the program was linked with. CURL=small (the
# default) builds a libcurl from Debian's source with HTTP, HTTPS and HTTP/2 and nothing else; CURL=debian
# takes Debian's, with all that it needs. DIRECTORY.packages lists the packages that files came from.
set -eu

if [ "$#" -lt 2 ]; then
  sed -n '2,10p' "$0" >&2
  exit 2
fi
dir=$1
program=$2
here=$(dpkg --print-architecture)
arch=${3:-$here}
curl=${CURL:-small}
multiarch=$(dpkg-architecture -a "$arch" -q DEB_HOST_MULTIARCH 2>/dev/null)
emulator=
[ "$arch" = "$here" ] || emulator=qemu-${multiarch%%-*}-static

rm -rf "$dir" "$dir.packages" "$dir.work"
mkdir -p "$dir" "$dir.work"
dir=$(cd "$dir" && pwd)
work=$dir.work
libraries=$dir/usr/lib/$multiarch
install -d "$dir/usr/bin" "$libraries"
install -m 755 "$program" "$dir/usr/bin/profpull"
program=$dir/usr/bin/profpull

# The package that a file came from. Files are listed with and without /usr in front.
package_of() {
  short=${1#/usr}
  dpkg-query -S "$short" "/usr$short" 2>/dev/null | sed -n '1s/: .*//p'
}

if [ "$curl" = small ]; then
  "$(dirname "$0")/small-curl.sh" "$work/libcurl.so.4" "$arch"
fi
interpreter=$(readelf -l "$program" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')

# As the loader finds them, so that those of libraries are among them.
LD_LIBRARY_PATH=$work $emulator "$interpreter" --list "$program" |
  sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p' | sort >"$work/libraries"
while read -r library; do
  install -m 644 "$library" "$libraries/$(basename "$library")"
  if [ "$library" = "$work/libcurl.so.4" ]; then
    echo "libcurl4:$arch built from source with HTTP, HTTPS and HTTP/2 only"
  else
    package=$(package_of "$(readlink -f "$library")")
    if [ -z "$package" ]; then
      echo "$0: no package has $library" >&2
      exit 1
    fi
    echo "$package"
  fi
done <"$work/libraries" >"$work/packages"
install -D -m 755 "$interpreter" "$dir$interpreter"
rm -f "$libraries/$(basename "$interpreter")"

install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/ca-certificates.crt"
echo ca-certificates >>"$work/packages"
echo "libiberty-dev:$arch linked statically: its demangler" >>"$work/packages"
sort -u "$work/packages" >"$dir.packages"
while read -r package _; do
  name=${package%%:*}
  install -D -m 644 "/usr/share/doc/$name/copyright" "$dir/usr/share/doc/$name/copyright"
done <"$dir.packages"

cat >"$dir/etc/passwd" <<'END'
root:x:0:0:root:/:/sbin/nologin
profpull:x:65532:65532:profpull:/var/lib/profpull:/sbin/nologin
END
printf 'root:x:0:\nprofpull:x:65532:\n' >"$dir/etc/group"
echo 'hosts: files dns' >"$dir/etc/nsswitch.conf"
install -d "$dir/etc/profpull" "$dir/var/lib"
install -d -m 1777 "$dir/tmp"
# The working directory: any user of a cluster's choice may enter it.
install -d -o 65532 -g 65532 -m 755 "$dir/var/lib/profpull"
rm -rf "$work"
