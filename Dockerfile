# The image of the operator: one program that was built before, and nothing else. No base image is pulled, so the build works
# without a network. `make docker-build` builds the program, puts it into a folder and runs podman, buildah or docker on that.
FROM scratch
COPY virt-advisor /
USER 65532:65532
ENTRYPOINT ["/virt-advisor"]
CMD ["operator"]
