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
TEST_TOOLS := $(DEMO_TOOLS) kube-scheduler kube-controller-manager kwok descheduler prometheus promtool

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
build-installer: ## Write dist/install.yaml, all of the above in one file (IMG=registry/name:tag: with this image)
	@$(XTASK) build-installer $(if $(IMG),--image '$(IMG)')

.PHONY: docker-build docker-push
docker-build: ## Build the image of the operator with podman or docker (IMG=registry/name:tag, CONTAINER_TOOL=docker)
	@$(XTASK) image-build $(if $(IMG),--image '$(IMG)') $(if $(CONTAINER_TOOL),--tool '$(CONTAINER_TOOL)')
docker-push: ## Push it to its registry
	@$(XTASK) image-push $(if $(IMG),--image '$(IMG)') $(if $(CONTAINER_TOOL),--tool '$(CONTAINER_TOOL)')

.PHONY: lab-image
lab-image: ## Build the image of the lab's parts (IMG=registry/name:tag, CONTAINER_TOOL=docker)
	@$(XTASK) image-build --lab $(if $(IMG),--image '$(IMG)') $(if $(CONTAINER_TOOL),--tool '$(CONTAINER_TOOL)')

##@ Develop

.PHONY: dev-setup kind-delete dev-teardown
dev-setup: ## Start a cluster with stand-ins for OpenShift's kinds: kind's, or our own without kind (OWN=1: always our own)
	@$(XTASK) dev-setup $(if $(OWN),--own) $(if $(DEV_FOLDER),--folder '$(DEV_FOLDER)')
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
	@$(CARGO) test --workspace --locked --lib --bins
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

.PHONY: test-closed-loop
test-closed-loop: ## Let the real descheduler even out every skew of the lab, and show where it cannot
	@$(CARGO) test --locked --package lab --test closed_loop -- --nocapture --include-ignored --test-threads=2 --skip lab_table

.PHONY: lab-table
lab-table: ## Run all algorithms in the loop of the lab, and write what comes of it to docs/lab/loop-table.md (half an hour; ONLY='max_metric pareto_front': these)
	@LAB_TABLE_ONLY='$(ONLY)' $(CARGO) test --locked --package lab --test closed_loop -- --nocapture --ignored lab_table

.PHONY: build
build: ## Build the workspace
	@$(CARGO) build --workspace --locked

.PHONY: build-static
PROFILE ?= release
build-static: ## Build virt-advisor as the image holds it: a file that needs nothing but a kernel (PROFILE=dev: not optimized)
	@RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --locked --package virt-advisor \
	  --target "$$(rustc -vV | sed -n 's/^host: //p')" --profile $(PROFILE)

.PHONY: fmt
fmt: ## Format the code
	@$(CARGO) fmt --all

.PHONY: lint
lint: ## Lint the code as the tests do
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: generate manifests
generate: ## Write the files that are generated from code
	@$(XTASK) generate
	@$(XTASK) build-installer
manifests: generate ## The same under its usual name

.PHONY: tools
tools: ## Build the third-party programs that are missing (TOOLS="etcd kubectl": just these)
	@$(XTASK) tools $(TOOLS)

.PHONY: bench-cluster
bench-cluster: ## Measure start-up time and memory of the control plane
	@$(XTASK) bench-cluster

.PHONY: bench-operator
bench-operator: ## Measure what the operator costs: waiting time, requests, memory (optimized build)
	@$(CARGO) run --locked --release --package xtask -- bench-operator

.PHONY: bench-plan
bench-plan: ## Measure what a plan costs, as a ratio to the API calls it cannot avoid (optimized build)
	@$(CARGO) run --locked --release --package xtask -- bench-plan

.PHONY: bench-impact
bench-impact: ## Measure the blast radius of a plan on up to 500 nodes with 10,000 virtual machines (optimized build)
	@$(CARGO) bench --locked --package advisor --bench blast_radius

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
