# The image of Interlock: one static program on nothing, under nobody's account. It was written without a container engine at
# hand, so nobody has built it yet: look at the first build with care.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) -t NAME .
#
# Each platform is compiled on the build machine itself, not under emulation.
FROM --platform=$BUILDPLATFORM rust:1.95-alpine AS build
ARG TARGETARCH
# Not read by cargo, but by what packs the layers: the same source gives the same image.
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
# aws-lc-rs compiles C and assembly; zig brings a C compiler for both platforms, and musl makes the program static.
RUN apk add --no-cache musl-dev cmake make perl zig \
 && cargo install --locked cargo-zigbuild
COPY . .
# Neither the path of the build nor its time ends up in the program.
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
# Nobody; the manifests say the same, and the root file system is read-only there.
USER 65532:65532
# Reviews; probes and metrics.
EXPOSE 8443 8081
ENTRYPOINT ["/interlock"]
CMD ["serve"]
