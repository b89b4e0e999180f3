# The image of Interlock: one static program, without a base image, under an unprivileged account. It was written
# without a container engine, so nobody has built it yet: check the first build carefully.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) -t NAME .
#
# The build machine cross-compiles for each platform, without emulation.
FROM --platform=$BUILDPLATFORM rust:1.95-alpine AS build
ARG TARGETARCH
# For buildkit, not for cargo: the same source gives the same layers.
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
# aws-lc-rs compiles C and assembly. zig provides a C compiler for both platforms, and musl makes the program static.
RUN apk add --no-cache musl-dev cmake make perl zig \
 && cargo install --locked cargo-zigbuild
COPY . .
# The program contains neither the path nor the time of the build.
ENV CARGO_PROFILE_RELEASE_STRIP=symbols \
    RUSTFLAGS="--remap-path-prefix=/src=. --remap-path-prefix=/usr/local/cargo=cargo"
RUN case "$TARGETARCH" in \
      amd64) target=x86_64-unknown-linux-musl ;; \
      arm64) target=aarch64-unknown-linux-musl ;; \
      *) echo "there is no build for $TARGETARCH" >&2; exit 1 ;; \
    esac \
 && rustup target add "$target" \
 && cargo zigbuild --release --locked --bin interlock --target "$target" \
 && install -D "target/$target/release/interlock" /out/interlock

FROM scratch
COPY --from=build /out/interlock /interlock
# An unprivileged user. The manifests name the same one, and make the root file system read-only.
USER 65532:65532
# 8443: reviews. 8081: probes and metrics.
EXPOSE 8443 8081
ENTRYPOINT ["/interlock"]
CMD ["serve"]
