# The program alone, static, under a user without rights.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) -t mailgate .
#   docker run -v mailgate:/var/lib/mailgate --stop-timeout 40 -p 127.0.0.1:8080:8080 --env-file .env mailgate
#
# The history is in the volume, which -v gives a name: without one each container begins
# with an empty one.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/usr/bin/mailgate ./cmd/mailgate
# What else a static program needs: the authorities that relays' certificates are
# checked against, and a place of its own to write to.
RUN mkdir -p /out/etc/ssl/certs /out/var/lib/mailgate /out/tmp \
 && cp /etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/ \
 && chown -R 65532:65532 /out/var/lib/mailgate

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
# The history is kept in ./mailgate-data.
WORKDIR /var/lib/mailgate
VOLUME /var/lib/mailgate
# Beyond loopback, so it starts with MAILGATE_API_KEYS only.
ENV MAILGATE_LISTEN=:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/usr/bin/mailgate", "healthcheck"]
ENTRYPOINT ["/usr/bin/mailgate"]
CMD ["serve"]
