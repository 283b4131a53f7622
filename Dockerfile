# Two images with nothing in them but what they run. `make docker-build` builds the operator, which comes last and is what
# is built when no target is named; `config/lab/setup-kind-env.sh` builds the target rebalance-lab. Docker and podman both do.
FROM docker.io/library/rust:1.95-bookworm AS source
WORKDIR /source
COPY . .

FROM source AS build-lab
RUN RUSTFLAGS='-C target-feature=+crt-static' cargo build --locked --release --package rebalance-lab \
      --target "$(rustc -vV | sed -n 's/^host: //p')" \
    && cp target/*/release/rebalance-lab /rebalance-lab

FROM registry.k8s.io/descheduler/descheduler:v0.36.0 AS descheduler

# All parts of the lab; the first argument says which. The stand-in for the descheduler operator starts the real
# descheduler, so that is in it, too.
FROM scratch AS rebalance-lab
COPY --from=descheduler /bin/descheduler /descheduler
COPY --from=build-lab /rebalance-lab /rebalance-lab
USER 65532:65532
ENTRYPOINT ["/rebalance-lab"]

FROM source AS build
RUN make build-static && cp target/*/release/virt-advisor /virt-advisor

FROM scratch
COPY --from=build /virt-advisor /virt-advisor
USER 65532:65532
ENTRYPOINT ["/virt-advisor"]
CMD ["operator"]
