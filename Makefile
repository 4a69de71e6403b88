# The targets apply to every module, which is every folder with a go.mod. Modules that only pin programs are excluded: the
# test servers below e2e/servers, and tools below hack.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './e2e/servers/*' -not -path './hack/*' -not -path './docs/*')))
APIS := $(sort $(shell find . -type d -name apis -not -path './.*' -not -path './docs/*'))
# The modules that run in the cluster. Each has permissions and an image.
PROGRAMS := $(patsubst %/main.go,%,$(wildcard provider-*/main.go generator-*/main.go))
BIN := $(CURDIR)/bin
TOOLS := $(BIN)/tools

IMAGES ?= $(PROGRAMS)
IMAGE_VERSION ?= 0.0.0-dev
ARCHS ?= amd64 arm64

# Tests and binaries have the same compiler settings, so that they share compiled packages.
export GOFLAGS += -trimpath
export CGO_ENABLED := 0
# Garbage is collected less often than by default, which saves a fourth of the time of tests and their servers.
GO_TEST = GOGC=400 go test $(GO_TEST_FLAGS)
# The race detector needs a C compiler.
GO_RACE = env CGO_ENABLED=1 go test -race $(GO_TEST_FLAGS)
# More tests run at the same time than there are cores, because most of them wait for servers. TAGS=long adds long tests.
TAGS ?=
TEST_TIMEOUT ?= 30m
GO_TEST_FLAGS = -p 3 -parallel 8 -timeout $(TEST_TIMEOUT) -tags=$(TAGS) $(TEST_FLAGS)
TEST_FLAGS ?=
REHEARSE_TESTS ?= hack/release-tests.sh

# each runs $(1) in each module, and fails at the end if it failed in one.
each = failed=; for module in $(MODULES); do echo "== $$module"; (cd $$module && $(1)) || failed+=" $$module"; done; \
	if [[ -n $$failed ]]; then echo "FAILED:$$failed" >&2; exit 1; fi

# Exports the folder of the control plane's binaries, and builds missing ones.
ASSETS = KUBEBUILDER_ASSETS=$$(hack/controlplane.sh); export KUBEBUILDER_ASSETS;
# Exports the servers and commands for tests.
SERVERS = $(ASSETS) VAULT_TEST_SERVER=$$(hack/vault.sh); TEST_COMMANDS=$$(hack/commands.sh); export VAULT_TEST_SERVER TEST_COMMANDS;

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every command into bin/: static, stripped, without local paths, and without gRPC's traces.
	@for module in $(MODULES); do \
		folder=$$(cd $$module && pwd); \
		mains=$$(cd $$module && go list -f '{{if eq .Name "main"}}{{.Dir}}{{end}}' ./...); \
		for main in $$mains; do \
			case $${main#"$$folder"} in '' | /cmd/*) ;; *) continue ;; esac; \
			echo "bin/$${main##*/}"; \
			(cd $$module && go build -trimpath -tags grpcnotrace -ldflags '-s -w' -o $(BIN)/$${main##*/} $$main); \
		done; \
	done

.PHONY: controlplane
controlplane: ## Build or find kube-apiserver, kube-controller-manager and etcd; the last line names their folder.
	@hack/controlplane.sh

# Two modules are tested at the same time, the longest first, because the last packages of a module leave cores idle.
# Go's test cache does not see that tests of e2e depend on files outside of their module: pages, charts and modules.
LONGEST = ./common ./e2e .
TESTS = $(addprefix test-of-,$(LONGEST) $(filter-out $(LONGEST),$(MODULES)))
.PHONY: test $(TESTS)
test: ## Run the unit tests and the tests on a real control plane of all modules: before each commit.
	@$(SERVERS) $(MAKE) --no-print-directory --keep-going -j 2 $(TESTS)

$(TESTS): test-of-%:
	@cd $* && $(GO_TEST) -p 2 $(if $(filter ./e2e,$*),-count=1) ./...

.PHONY: race
race: ## Run tests of concurrent code with the race detector: unit tests, and a scenario of each controller.
	@$(SERVERS) RACE="$(GO_RACE)" hack/race.sh

.PHONY: test-race
test-race: ## Run the tests of `make test` with the race detector.
	@$(SERVERS) $(call each,$(GO_RACE) ./...)

.PHONY: test-standalone
test-standalone: ## Test each module alone against a packed common (COMMON=next for its next patch, or another version).
	@$(SERVERS) COMMON=$(COMMON) hack/standalone.sh $(MODULES)

.PHONY: scaffolds
scaffolds: $(TOOLS)/controller-gen ## Lay out a new provider and a new generator in another repository, and run their tests.
	@hack/scaffolds.sh

.PHONY: renovate
renovate: ## Check renovate.json, and what Renovate does with it to a copy of the tree.
	@hack/renovate.sh

.PHONY: test-all
test-all: ## Run all tests, the long ones too, with the race detector; each module alone; the fuzz targets; new modules, the site and Renovate. It takes hours.
	@$(MAKE) --no-print-directory test-race TAGS=long TEST_TIMEOUT=90m
	@$(MAKE) --no-print-directory verify scaffolds docs-check renovate
	@$(MAKE) --no-print-directory test-standalone
	@$(MAKE) --no-print-directory fuzz

.PHONY: e2e
e2e: ## Run all scenarios (K8S=1.33.13 for another version of Kubernetes, E2E_FLAGS for more).
	@$(SERVERS) CGO_ENABLED=1 exec go -C e2e test -race -tags long -count=1 -timeout 90m $(E2E_FLAGS) ./...

# The alias "certified" is the version that hack/image pins; a test compares them.
.PHONY: e2e-fips
e2e-fips: ## Run the scenario that syncs with every emulator, with modules that are built like FIPS images.
	@$(SERVERS) GOFIPS140=certified exec go -C e2e test -tags long -count=1 -timeout 60m -run '^TestEveryKind$$' $(E2E_FLAGS) ./scenarios

.PHONY: fuzz
fuzz: ## Run every fuzz target for half a minute (FUZZTIME for another time).
	@hack/fuzz.sh .

.PHONY: demo
demo: ## Show how a secret of AWS Secrets Manager becomes a Kubernetes Secret.
	@hack/demo.sh $(DEMO_FLAGS)

.PHONY: bench
bench: build ## Measure 1,000 ExternalSecrets in 50 namespaces, compared with the floor (BENCH_FLAGS for more).
	@$(SERVERS) exec $(BIN)/bench $(BENCH_FLAGS)

.PHONY: soak
soak: build ## Run the benchmark's steady load for 15 minutes and watch the queue (BENCH_FLAGS for more).
	@$(ASSETS) exec $(BIN)/bench --soak=15m $(BENCH_FLAGS)

.PHONY: generate
generate: $(TOOLS)/controller-gen ## Write the Kinds, the deep copies and the CRDs of every folder named apis, the RBAC of every module, the charts, and pages of the docs.
	@go run ./hack/kinds $(wildcard $(addsuffix /*/,$(APIS)))
	@for apis in $(APIS); do \
		echo "$$apis"; \
		(cd $$apis && $(TOOLS)/controller-gen paths=./... object crd:allowDangerousTypes=false output:crd:dir=../manifests/crds); \
	done
	@go run ./hack/permissions $(TOOLS)/controller-gen $(PROGRAMS)
	@go run ./hack/charts
	@go run ./hack/release lock
	@go run ./hack/docs

.PHONY: generate-module
generate-module: $(TOOLS)/controller-gen ## Write the Kinds, the deep copies, the CRDs and the RBAC of a module of another repository (FOLDER=../acme/provider-acme).
	@go run ./hack/kinds "$(FOLDER)/apis/v1alpha1"
	@cd "$(FOLDER)/apis" && $(TOOLS)/controller-gen paths=./v1alpha1 object crd:allowDangerousTypes=false output:crd:dir=../manifests/crds
	@go run ./hack/permissions $(TOOLS)/controller-gen "$(FOLDER)"

.PHONY: release-rehearsal
release-rehearsal: ## Release what is due in a copy of the last commit, publish it to a registry on loopback, and install from it. It needs jq, curl and qemu-user-static.
	@$(SERVERS) exec go run ./hack/rehearsal

.PHONY: rehearse
rehearse: ## Release what is due and a change of each sort in a copy of the last commit, with the workflow's jobs, and test each commit (REHEARSE_TESTS="go vet ./hack/..." for other tests).
	@$(SERVERS) exec go run ./hack/release rehearse $(REHEARSE_TESTS)

.PHONY: conformance
conformance: ## Run the conformance tests of all providers and generators, and write their results to docs/reference/conformance.md.
	@$(SERVERS) exec go run ./hack/conformance

.PHONY: charts
charts: ## Package the charts into bin/charts; the same tree yields the same bytes.
	@go run ./hack/chartpackages $(BIN)/charts

.PHONY: images
images: ## Write an OCI archive per module into bin/images and print the digests (IMAGE_VERSION, ARCHS, IMAGES; IMAGE_FLAGS=-load for kind, -fips for the FIPS images too).
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	go run ./hack/image -version '$(IMAGE_VERSION)' -archs '$(ARCHS)' -out $(BIN)/images \
		-revision "$$(test -n "$$(git status --porcelain)" || git rev-parse HEAD)" $(IMAGE_FLAGS) $(IMAGES)

.PHONY: dsctl
dsctl: ## Write an archive of dsctl per platform into bin/dsctl-archives, with checksums and the manifest for krew (IMAGE_VERSION).
	@go run ./hack/image -version '$(IMAGE_VERSION)' -out $(BIN)/dsctl-archives -dsctl

.PHONY: new-provider
new-provider: $(TOOLS)/controller-gen ## Create the module provider-NAME with the Kind KIND (NAME=acme KIND=AcmeVault), or one of another repository (FOLDER=../acme MODULE=example.com/acme/provider-acme, and GROUP=acme.example.com if the domain is not yours).
	@hack/new-provider.sh provider "$(NAME)" "$(KIND)" "$(FOLDER)" "$(MODULE)" "$(GROUP)"

.PHONY: new-generator
new-generator: $(TOOLS)/controller-gen ## Create the module generator-NAME with the Kind KIND (NAME=acme KIND=AcmeToken).
	@hack/new-provider.sh generator "$(NAME)" "$(KIND)" "$(FOLDER)" "$(MODULE)" "$(GROUP)"

.PHONY: docs
docs: docs/node_modules/.package-lock.json ## Build the site of docs/ into docs/.vitepress/dist (DOCS_BASE, DOCS_VERSION and DOCS_REF for a version of it).
	@docs/node_modules/.bin/vitepress build docs

.PHONY: docs-check
docs-check: docs ## Build the site, and check its links, anchors, sidebar and descriptions, and the spelling of all pages.
	@node --test --test-reporter=dot docs/.vitepress/lib/*.test.mjs
	@node docs/.vitepress/check.mjs
	@docs/node_modules/.bin/cspell --no-progress --config docs/cspell.json

.PHONY: docs-serve
docs-serve: docs/node_modules/.package-lock.json ## Serve the site on loopback, and show changes of pages immediately.
	@docs/node_modules/.bin/vitepress dev docs --host 127.0.0.1

.PHONY: verify
verify: build $(TOOLS)/actionlint ## Check generated files, go.mod files, imports, structure and sizes.
	@hack/verify.sh $(MODULES)

# One workspace holds all modules, so that what they share is analysed once.
.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Hold all texts to plain words, and run golangci-lint over every module.
	@go run ./hack/words
	@work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	(cd "$$work" && go work init $(abspath $(MODULES))); \
	export GOWORK=$$work/go.work; hack/rawuses.sh $(TOOLS)/golangci-lint && \
	$(TOOLS)/golangci-lint run --config .golangci.yml $(addsuffix /...,$(MODULES))

# Each tool is pinned in its own folder below hack. It is rebuilt when its version changes.
$(TOOLS)/%: hack/%/go.mod hack/%/go.sum
	@mkdir -p $(TOOLS)
	@echo "bin/tools/$*"
	@go -C hack/$* build -trimpath -ldflags '-s -w' -o $@ $$(go -C hack/$* list tool)

# npm writes this file last.
docs/node_modules/.package-lock.json: docs/package.json docs/package-lock.json docs/.npmrc
	@npm ci --prefix docs --ignore-scripts --no-audit --no-fund
