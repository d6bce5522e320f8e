# syntax=docker/dockerfile:1

# Both bases are arguments, so that a build can pin them by digest (the release does), or put local ones in their place.
ARG BUILD_IMAGE=docker.io/library/rust:1.95-slim-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
ENV CARGO_INCREMENTAL=0 SQLX_OFFLINE=true

# Dependencies first, from the manifests and empty sources: a layer that stays until Cargo.lock changes.
COPY Cargo.toml Cargo.lock build.rs ./
COPY .cargo .cargo
RUN mkdir -p src benches tests \
    && touch src/lib.rs benches/decode.rs tests/integration.rs \
    && echo 'fn main() {}' >src/main.rs
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    cargo build --locked --release --bin bellhop

COPY .sqlx .sqlx
COPY migrations migrations
COPY src src
# The copied files may be older than what was built from the empty ones; cargo goes by that.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    touch src/lib.rs src/main.rs \
    && cargo build --locked --release --bin bellhop \
    && install -D --mode=755 target/release/bellhop /out/bellhop

FROM ${RUNTIME_IMAGE}

ARG VERSION=0.0.0-dev
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
# Where the sources are; CI knows, and gives its own.
ARG SOURCE=
ARG RUNTIME_IMAGE
LABEL org.opencontainers.image.title="bellhop" \
      org.opencontainers.image.description="Has each Google Chat event from Pub/Sub handled once" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"

COPY --from=build /out/bellhop /usr/local/bin/bellhop

# By number: Kubernetes' runAsNonRoot cannot check a name.
USER 65532:65532
EXPOSE 8080
# No shell in between: bellhop is process 1 and gets SIGTERM itself. Probes belong to who runs it: `bellhop healthcheck`.
ENTRYPOINT ["/usr/local/bin/bellhop"]
CMD ["run"]
