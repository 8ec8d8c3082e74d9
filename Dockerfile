# profpull as a container: the program, its libraries and CA certificates.
#
#   docker build -t profpull:0.1.0 .
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      gcc libc6-dev make pkg-config libcurl4-openssl-dev libjansson-dev libyaml-dev \
      zlib1g-dev libdeflate-dev libpcre2-dev libevent-dev libssl-dev libmd-dev libcrypt-dev \
      libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler
COPY . /src
RUN make -C /src -j"$(nproc)" && strip /src/build/profpull

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates libcurl4 libjansson4 libyaml-0-2 zlib1g libdeflate0 libpcre2-8-0 libevent-2.1-7 \
      libevent-openssl-2.1-7 libssl3 libmd0 libcrypt1 libsqlite3-0 libprotobuf-c1 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/profpull /usr/local/bin/profpull
# What runs in it listens on all interfaces.
ENV container=oci
USER 65532:65532
EXPOSE 4041
ENTRYPOINT ["profpull"]
CMD ["run", "--config", "/etc/profpull/profpull.yaml"]
