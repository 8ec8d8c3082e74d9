#!/bin/sh
# Builds a libcurl with HTTP, HTTPS and HTTP/2 and nothing else, from the source and the patches of
# Debian's package, in which programs find the names of symbols of that package.
#
#   scripts/small-curl.sh FILE [ARCHITECTURE]
#
# FILE is the stripped library. Runs on Debian, after apt-get update with deb-src lines; FILE.log has the output.
set -eu

if [ "$#" -lt 1 ]; then
  sed -n '2,7p' "$0" >&2
  exit 2
fi
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
arch=${2:-$(dpkg --print-architecture)}
gnu=$(dpkg-architecture -a "$arch" -q DEB_HOST_GNU_TYPE 2>/dev/null)
multiarch=$(dpkg-architecture -a "$arch" -q DEB_HOST_MULTIARCH 2>/dev/null)

build() {
  apt-get source -q curl
  cd curl-*/
  # The last patches make the packages with other TLS libraries of it.
  grep -E '(gnutls|nss)\.patch$' debian/patches/series | sort -r | while read -r patch; do
    patch -R -p1 <"debian/patches/$patch"
  done
  autoreconf -fi
  PKG_CONFIG_LIBDIR=/usr/lib/$multiarch/pkgconfig:/usr/share/pkgconfig \
    CFLAGS="-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$PWD=." \
    LDFLAGS="-Wl,-z,relro,-z,now,--as-needed" ./configure --host="$gnu" --prefix=/usr --disable-static \
    --enable-versioned-symbols --with-openssl --with-zlib --with-nghttp2 \
    --with-ca-bundle=/etc/ssl/certs/ca-certificates.crt --without-ca-path \
    --without-brotli --without-zstd --without-libidn2 --without-libpsl --without-libssh2 \
    --without-librtmp --without-libgsasl --without-gssapi --disable-alt-svc --disable-dict --disable-file \
    --disable-ftp --disable-gopher --disable-imap --disable-ldap --disable-ldaps --disable-manual \
    --disable-mqtt --disable-ntlm --disable-pop3 --disable-rtsp --disable-smb --disable-smtp \
    --disable-telnet --disable-tftp
  make -C lib -j"$(nproc)"
  "$gnu-strip" -o "$out" lib/.libs/libcurl.so.4
}

work=$(mktemp -d "$out.XXXXXX")
cd "$work"
# In a shell of its own, which ends at the first error.
code=0
(build) >"$out.log" 2>&1 & wait "$!" || code=$?
if [ "$code" -ne 0 ]; then
  tail -n 30 "$out.log" >&2
  exit "$code"
fi
rm -rf "$work"
