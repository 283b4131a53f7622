# Targets carry their help text behind `##`; `make help` prints them.

.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO ?= cargo
# Not quiet: a first build takes minutes, and cargo says how far it is.
XTASK := $(CARGO) run --locked --package xtask --
# Where cargo puts programs.
BUILT := $(or $(CARGO_TARGET_DIR),target)/debug

# The third-party programs that the demo and the tests run. Nothing else is built for them.
DEMO_TOOLS := etcd kube-apiserver kubectl
LAB_TOOLS := $(DEMO_TOOLS) kube-scheduler kube-controller-manager kwok descheduler prometheus
TEST_TOOLS := $(LAB_TOOLS) promtool validate-krew-manifest
# What only the packages are tested with.
PACKAGE_TOOLS := helm helm3 operator-verify
# What only a node runs.
NODE_TOOLS := kubelet kube-proxy containerd containerd-shim-runc-v2 ctr coredns helm

# Says at once what is missing on this machine. Times that are announced below are of two cores.
PREREQUISITES := @CARGO='$(CARGO)' tools/check-prerequisites

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2} /^##@/ {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ Use

.PHONY: demo
demo: ## Start a control plane, show the product on it, stay up until Ctrl-C
	$(PREREQUISITES) --space 4 $(DEMO_TOOLS)
	@echo "== 1 of 3: build this project (8 minutes the first time, seconds later)"
	@$(CARGO) build --locked --package virt-advisor --package xtask
	@echo "== 2 of 3: build the Kubernetes programs that are missing (8 minutes the first time, nothing later)"
	@$(BUILT)/xtask tools $(DEMO_TOOLS)
	@echo "== 3 of 3: the demo"
	@$(BUILT)/xtask demo

.PHONY: run
run: ## Run the operator here, against the cluster of your kubeconfig (ARGS="--help": its options)
	@$(CARGO) run --locked --package virt-advisor -- operator $(ARGS)

.PHONY: cluster
cluster: ## Start a control plane to play with (FULL=1: with scheduler, controllers, KWOK, Prometheus, descheduler)
	@$(XTASK) cluster $(if $(FULL),--full)

.PHONY: lab
lab: ## Start the lab: a cluster of pretended nodes that the real descheduler balances, until Ctrl-C (ARGS="--help": its options)
	$(PREREQUISITES) --space 8 $(LAB_TOOLS)
	@$(CARGO) run --locked --release --package rebalance-lab --bin rebalance-lab -- up $(ARGS)

##@ Deploy, to the cluster of your kubeconfig

.PHONY: install uninstall
install: ## Install the definition of VirtPlatformConfig
	@$(XTASK) install
uninstall: ## Remove the definition (FORCE=1: even if people's objects go with it)
	@$(XTASK) uninstall $(if $(FORCE),--force)

.PHONY: deploy undeploy
deploy: ## Install the operator, its rights and the definition (IMG=registry/name:tag: with this image)
	@$(XTASK) deploy $(if $(IMG),--image '$(IMG)')
undeploy: ## Remove the operator and its rights; the namespace, the definition and its objects stay
	@$(XTASK) undeploy

.PHONY: build-installer
build-installer: ## Write dist/install.yaml and dist/install-with-namespace.yaml, all of the above in one file (IMG=registry/name:tag: with this image)
	@$(XTASK) build-installer $(if $(IMG),--image '$(IMG)')

# What the commands for images share. IMG names the image, ARCH the architectures: amd64, arm64, or both.
PROFILE ?= release
IMAGE_ARGS = $(if $(IMG),--image '$(IMG)')
SOURCE_ARGS = --profile '$(PROFILE)' $(foreach arch,$(ARCH),--arch $(arch))
TOOL_ARGS = $(if $(CONTAINER_TOOL),--tool '$(CONTAINER_TOOL)')

.PHONY: docker-build docker-push
docker-build: ## Build the image of the operator with podman, docker or buildah (IMG=registry/name:tag, CONTAINER_TOOL=docker, ARCH=arm64)
	$(PREREQUISITES) --space 8
	@$(XTASK) image-build $(IMAGE_ARGS) $(SOURCE_ARGS) $(TOOL_ARGS)
docker-push: ## Push it to its registry
	@$(XTASK) image-push $(IMAGE_ARGS) $(TOOL_ARGS)

.PHONY: lab-image
lab-image: ## Build the image of the lab's parts (IMG=registry/name:tag, CONTAINER_TOOL=docker, ARCH=arm64)
	$(PREREQUISITES) --space 8 descheduler
	@$(XTASK) image-build --lab $(IMAGE_ARGS) $(SOURCE_ARGS) $(TOOL_ARGS)

.PHONY: image-archive
image-archive: ## Write the image as a file, without a container engine, with SBOM and provenance (LAB=1: of the lab; IMG=, ARCH="amd64 arm64", OUTPUT=folder)
	$(PREREQUISITES) --space 8 $(if $(LAB),descheduler)
	@$(XTASK) image-archive $(if $(LAB),--lab) $(IMAGE_ARGS) $(SOURCE_ARGS) $(if $(OUTPUT),--output '$(OUTPUT)')

.PHONY: must-gather-image
must-gather-image: ## Build the image for `oc adm must-gather` from that of the operator (MUST_GATHER_IMG=, IMG=, BASE_IMAGE=registry/name:tag, CONTAINER_TOOL=docker)
	@$(XTASK) image-must-gather $(if $(MUST_GATHER_IMG),--image '$(MUST_GATHER_IMG)') $(if $(IMG),--operator-image '$(IMG)') $(if $(BASE_IMAGE),--base-image '$(BASE_IMAGE)') $(TOOL_ARGS)

.PHONY: release
release: generate ## Write everything that is published to dist/release, with checksums (VERSION=v0.1.0: what you expect it to be; IMG=, MUST_GATHER_IMG=registry/name:tag, ARCH="amd64 arm64", LAB=1: the image of the lab, too)
	$(PREREQUISITES) --space 8 $(if $(LAB),descheduler)
	@$(XTASK) release $(if $(VERSION),--version '$(VERSION)') $(IMAGE_ARGS) $(if $(MUST_GATHER_IMG),--must-gather-image '$(MUST_GATHER_IMG)') $(SOURCE_ARGS) $(if $(LAB),--lab)

##@ Develop

.PHONY: dev-setup kind-delete dev-teardown
dev-setup: ## Start a cluster with stand-ins for OpenShift's kinds: kind's, or our own without kind (OWN=1: always our own; CURRENT=1: the cluster of your kubeconfig)
	@$(XTASK) dev-setup $(if $(OWN),--own) $(if $(CURRENT),--current) $(if $(DEV_FOLDER),--folder '$(DEV_FOLDER)')
kind-delete: ## End what dev-setup started (OWN=1: just our own control plane)
	@$(XTASK) dev-teardown $(if $(OWN),--own) $(if $(DEV_FOLDER),--folder '$(DEV_FOLDER)')
dev-teardown: kind-delete ## The same under another name

.PHONY: check
check: ## Run what needs no API server, between edits: format, lints, unit tests (two minutes once built)
	$(PREREQUISITES) --lints --space 8
	@echo "== 1 of 3: format"
	@$(CARGO) fmt --all --check
	@echo "== 2 of 3: lints"
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@echo "== 3 of 3: tests without an API server"
	@$(CARGO) test --workspace --locked --lib --bins -- --skip third_party::
	@$(CARGO) test --locked --package advisor --package balance --package sim --test it -- --skip prometheus::

.PHONY: test
test: ## Run everything: format, lints, unit and API-server tests (a quarter of an hour once built)
	$(PREREQUISITES) --lints --space 12 $(TEST_TOOLS)
	@echo "== 1 of 6: format"
	@$(CARGO) fmt --all --check
	@echo "== 2 of 6: lints (6 minutes the first time)"
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@echo "== 3 of 6: build the tests (15 minutes the first time)"
	@$(CARGO) test --workspace --locked --lib --bins --tests --no-run
	@echo "== 4 of 6: build the third-party programs that are missing (16 minutes the first time, nothing later)"
	@$(BUILT)/xtask tools $(TEST_TOOLS)
	@echo "== 5 of 6: examples in the documentation (1 minute)"
	@$(CARGO) test --workspace --locked --doc
	@echo "== 6 of 6: unit and API-server tests; model checks and schedules beside them, at low priority (a quarter of an hour)"
	@CARGO='$(CARGO)' $(BUILT)/xtask run-tests

.PHONY: test-e2e
test-e2e: ## Run the guides command by command, the operator as its own process, on a control plane of their own
	@$(XTASK) tools $(TEST_TOOLS)
	@$(CARGO) test --locked --package virt-advisor --package rebalance-lab --package xtask --test it

.PHONY: test-packages
test-packages: ## Have Helm 4, Helm 3 and the validator of OLM judge chart and bundle (builds them first: a quarter of an hour)
	$(PREREQUISITES) --space 12 $(DEMO_TOOLS) $(PACKAGE_TOOLS)
	@$(XTASK) tools $(DEMO_TOOLS) $(PACKAGE_TOOLS)
	@$(CARGO) test --locked --package xtask --test it packages:: -- --nocapture --ignored

.PHONY: test-old-kubernetes
test-old-kubernetes: ## Install, upgrade and run on the oldest API server that is supported (builds it first: 6 minutes)
	$(PREREQUISITES) --space 12 $(DEMO_TOOLS) kube-apiserver-oldest
	@$(XTASK) tools $(DEMO_TOOLS) kube-apiserver-oldest
	@TEST_ASSET_KUBE_APISERVER="$$($(XTASK) tools --paths kube-apiserver-oldest | awk '{print $$NF}')" \
		$(CARGO) test --locked --package xtask --test it -- --nocapture --include-ignored old_kubernetes:: upgrade::next_release:: installation::

.PHONY: test-faults
test-faults: ## Run the faults and stopped processes against the real API server, the slow ones too
	@FAULTS=all $(CARGO) test --package operator --locked --test faults -- --nocapture --include-ignored
	@$(CARGO) test --package virt-advisor --locked --test it stopped:: -- --nocapture --include-ignored

.PHONY: test-schedules
test-schedules: ## Try random schedules of faults on a model of the API server (SCHEDULES=50000: so many; SEED=7: just this one)
	@$(CARGO) test --package operator --locked --release --test schedules whatever -- --nocapture

.PHONY: test-model
test-model: ## Explore the decisions and the executor with a model checker
	@$(CARGO) test --locked --package advisor --test model -- --nocapture --include-ignored

.PHONY: test-blast-radius
test-blast-radius: ## Roll out over 30 random clusters and compare with the forecast, guest by guest (four minutes; SEED=7: just this one)
	@$(CARGO) test --locked --package virt-advisor --test it blast_radius:: -- --nocapture --ignored

.PHONY: test-closed-loop
test-closed-loop: ## Let the real descheduler even out every skew of the lab, and show where it cannot
	@$(CARGO) test --locked --package lab --test closed_loop -- --nocapture --include-ignored --test-threads=2 --skip lab_table

.PHONY: lab-table
lab-table: ## Run all algorithms in the loop of the lab, and write what comes of it to docs/lab/loop-table.md (half an hour; ONLY='max_metric pareto_front': these)
	@LAB_TABLE_ONLY='$(ONLY)' $(CARGO) test --locked --package lab --test closed_loop -- --nocapture --ignored lab_table

.PHONY: test-images
test-images: ## Build the images with buildah and podman, compare them with the archives, and run them (minutes; PROFILE=release: as they are released)
	$(PREREQUISITES) --containers --space 16 descheduler
	@IMAGE_PROFILE='$(if $(filter file,$(origin PROFILE)),dev,$(PROFILE))' $(CARGO) test --locked --package xtask --test it image:: -- --ignored --nocapture

.PHONY: test-swap
test-swap: ## Have shellcheck and systemd judge the files that virt-higher-density puts on nodes, and run its script on a loop device (as root)
	@$(CARGO) test --locked --package xtask --test it swap:: -- --nocapture --include-ignored

.PHONY: check-profile
check-profile: ## Say what is missing of a profile (NAME=virt-higher-density)
	@$(XTASK) check-profile '$(NAME)'

.PHONY: node-test
node-test: ## Run the operator and the lab as pods on a real node: kubelet, containerd, kube-proxy, CoreDNS; as root (TEST=node::pods: just these)
	$(PREREQUISITES) --node --space 16 $(TEST_TOOLS) $(NODE_TOOLS)
	@$(XTASK) tools $(TEST_TOOLS) $(NODE_TOOLS)
	@$(CARGO) test --locked --package xtask --test it $(or $(TEST),node::) -- --ignored --nocapture --test-threads=1

.PHONY: build
build: ## Build the workspace
	@$(CARGO) build --workspace --locked

.PHONY: build-static
build-static: ## Build virt-advisor as the image holds it: a file that needs nothing but a kernel (PROFILE=dev: not optimized; LAB=1: rebalance-lab)
	@$(XTASK) build-static $(if $(LAB),--lab) $(SOURCE_ARGS)

.PHONY: fmt
fmt: ## Format the code
	@$(CARGO) fmt --all

.PHONY: lint
lint: ## Lint the code as the tests do
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: generate manifests
generate: ## Write the files that are generated from code
	@$(XTASK) generate
manifests: generate ## The same under its usual name

.PHONY: tools
tools: ## Build the third-party programs that are missing (TOOLS="etcd kubectl": just these)
	@$(XTASK) tools $(TOOLS)

.PHONY: bench-cluster
bench-cluster: ## Measure start-up time and memory of the control plane
	@$(XTASK) bench-cluster

.PHONY: bench-operator
bench-operator: ## Measure what the operator costs: waiting time, requests, memory (optimized build; PROGRAM=file: of this one)
	@$(CARGO) run --locked --release --package xtask -- bench-operator $(if $(PROGRAM),--program '$(PROGRAM)')

.PHONY: bench-plan
bench-plan: ## Measure what a plan costs, as a ratio to the API calls it cannot avoid (optimized build)
	@$(CARGO) run --locked --release --package xtask -- bench-plan

.PHONY: bench-impact
bench-impact: ## Measure the blast radius of a plan on up to 500 nodes with 10,000 virtual machines (optimized build)
	@$(CARGO) bench --locked --package advisor --bench blast_radius
	@$(CARGO) run --locked --release --package xtask -- bench-impact

.PHONY: bench-import
bench-import: ## Measure the import of 500 nodes with 10,000 VMs over seven days: time, memory, size (optimized build)
	@$(CARGO) bench --locked --package lab --bench import

.PHONY: bench-lab
bench-lab: ## Measure the lab's parts: VM controller, exporter, rules in Prometheus (optimized build)
	@$(CARGO) bench --locked --package lab-parts

.PHONY: bench-sim
bench-sim: ## Measure classification and simulation: wall time, and instructions as the gate (optimized build)
	@$(CARGO) bench --locked --package balance
	@$(CARGO) bench --locked --package sim --bench steps
	@$(CARGO) bench --locked --package sim --bench steps -- instructions

.PHONY: clean
clean: ## Remove what was built from this tree (the cache of third-party programs stays)
	@$(CARGO) clean
