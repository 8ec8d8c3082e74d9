# profpull as a container: the program, the libraries that it links, CA certificates, a user without rights.
# `make image` builds the same without a container engine, for both architectures (docs/installing.md).
#
#   docker build -t profpull:0.2.0 .
FROM debian:bookworm-slim AS build
# CURL=debian: Debian's libcurl instead of one with HTTP(S) and HTTP/2 alone.
ARG CURL=small
RUN sed -i 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources \
    && apt-get update && apt-get install -y --no-install-recommends \
      gcc libc6-dev make pkg-config libcurl4-openssl-dev libjansson-dev libyaml-dev \
      zlib1g-dev libdeflate-dev libisal-dev libpcre2-dev libevent-dev libssl-dev libmd-dev libcrypt-dev libseccomp-dev \
      libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler libdw-dev libiberty-dev \
      autoconf automake ca-certificates dpkg-dev libnghttp2-dev libtool
COPY . /src
RUN make -C /src -j"$(nproc)" && strip /src/build/profpull \
    && CURL=$CURL /src/scripts/image-root.sh /image /src/build/profpull

FROM scratch
COPY --from=build /image/ /
LABEL org.opencontainers.image.title="profpull" \
      org.opencontainers.image.description="continuous profiling by pull" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/usr/bin
# What runs in it listens on all interfaces.
ENV container=oci
# Belongs to this user: `run --target` keeps profiles below it.
WORKDIR /var/lib/profpull
USER 65532:65532
EXPOSE 4041/tcp
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/profpull"]
CMD ["run","--config","/etc/profpull/profpull.yaml"]
