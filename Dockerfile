# The image of Interlock: one static program, without a base image, under an unprivileged account. `scripts/release` and `scripts/image`
# pack the same program with the same settings without an engine (docs/release.md). `tests/it/image.rs` compares this file with what they
# make, and its build context with what the compiler reads. The tests run that image as pods; no test runs a container engine.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) \
#     --build-arg REVISION=$(git rev-parse HEAD) --build-arg CREATED=$(git log -1 --format=%cI) -t NAME .
#
# The build machine cross-compiles for each platform, without emulation. The tag names the versions of Rust and of Debian, and so
# of the C library. It has no digest, because there was no registry to look it up: add the one that your first build prints.
FROM --platform=$BUILDPLATFORM rust:1.95.0-bookworm AS build
ARG TARGETARCH
# The same source gives the same program and the same layers.
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
# aws-lc-rs compiles C and assembly. Debian's compiler for the other platform is not pinned: the base image has only its own.
RUN case "$TARGETARCH" in \
      amd64) cpu=x86_64 package=gcc-x86-64-linux-gnu ;; \
      arm64) cpu=aarch64 package=gcc-aarch64-linux-gnu ;; \
      *) echo "there is no build for $TARGETARCH" >&2; exit 1 ;; \
    esac \
 && rustup target add "$cpu-unknown-linux-gnu" \
 && { command -v "$cpu-linux-gnu-gcc" \
      || { apt-get update && apt-get install -y --no-install-recommends "$package" "libc6-dev-$TARGETARCH-cross"; }; }
COPY . .
# The context has no repository, so `interlock version` gets the commit from here.
ARG REVISION
RUN case "$TARGETARCH" in amd64) cpu=x86_64 ;; arm64) cpu=aarch64 ;; esac \
 && export INTERLOCK_COMMIT="$REVISION" \
 && export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x86_64-linux-gnu-gcc \
           CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
 && install -D -m 555 "$(scripts/program "$cpu-unknown-linux-gnu")" /out/interlock

FROM scratch
ARG REVISION=unknown
ARG CREATED=unknown
COPY --from=build /out/interlock /interlock
# `tests/it/image.rs` compares everything below with the image of `scripts/release`.
LABEL org.opencontainers.image.title="Interlock" \
      org.opencontainers.image.description="Kubernetes admission webhook that enforces safe release transitions" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
WORKDIR /
# An unprivileged user. The manifests name the same one, and make the root file system read-only.
USER 65532:65532
# 8443: reviews. 8081: probes and metrics.
EXPOSE 8443 8081
ENTRYPOINT ["/interlock"]
CMD ["serve"]
