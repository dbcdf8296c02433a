# The static program only, run by an unprivileged user.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) -t mailgate .
#   docker run -v mailgate:/var/lib/mailgate --stop-timeout 40 -p 127.0.0.1:8080:8080 --env-file .env mailgate
#
# The history is in the volume. Name it with -v: without a name each container starts with
# an empty one.

# The compiler runs on the build machine, whatever the image is for.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/usr/bin/mailgate ./cmd/mailgate
# A static program also needs the certificate authorities, and a directory to write to.
RUN mkdir -p /out/etc/ssl/certs /out/var/lib/mailgate /out/tmp \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && chown -R 65532:65532 /out/var/lib/mailgate

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
# The history is in ./mailgate-data.
WORKDIR /var/lib/mailgate
VOLUME /var/lib/mailgate
# Not loopback, so MAILGATE_API_KEYS is required.
ENV MAILGATE_LISTEN=:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/usr/bin/mailgate", "healthcheck"]
ENTRYPOINT ["/usr/bin/mailgate"]
CMD ["serve"]
