# The operator, in an image with nothing else in it. `make docker-build` builds it, with docker or podman.
FROM docker.io/library/rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN make build-static && cp target/*/release/virt-advisor /virt-advisor

FROM scratch
COPY --from=build /virt-advisor /virt-advisor
USER 65532:65532
ENTRYPOINT ["/virt-advisor"]
CMD ["operator"]
