# The targets work on every module found, that is every folder with a go.mod. Those that only pin
# programs are left out: the test servers below e2e/servers, and tools below hack.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './e2e/servers/*' -not -path './hack/*')))
APIS := $(sort $(shell find . -type d -name apis -not -path './.*'))
RIGHTS := $(patsubst %/config/config.go,%,$(wildcard */config/config.go))
BIN := $(CURDIR)/bin
TOOLS := $(BIN)/tools

# An image is made of each module that is a program of the cluster.
IMAGES ?= $(patsubst %/main.go,%,$(wildcard provider-*/main.go generator-*/main.go))
IMAGE_VERSION ?= 0.0.0-dev
ARCHS ?= amd64 arm64

# The race detector needs a C compiler. Without one the tests run all the same.
RACE ?= $(if $(shell command -v $$(go env CC)),-race)
TEST_TIMEOUT ?= 30m

# Exports the folder of the control plane's binaries, which it builds where they are absent.
ASSETS = KUBEBUILDER_ASSETS=$$(hack/controlplane.sh); export KUBEBUILDER_ASSETS;
# Exports all that tests run against.
SERVERS = $(ASSETS) VAULT_TEST_SERVER=$$(hack/vault.sh); export VAULT_TEST_SERVER; HELM=$$(hack/helm.sh); export HELM; PROMETHEUS=$$(hack/prometheus.sh); export PROMETHEUS;

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every command into bin/: static, stripped, without paths of this machine.
	@for module in $(MODULES); do \
		folder=$$(cd $$module && pwd); \
		mains=$$(cd $$module && go list -f '{{if eq .Name "main"}}{{.Dir}}{{end}}' ./...); \
		for main in $$mains; do \
			case $${main#"$$folder"} in '' | /cmd/*) ;; *) continue ;; esac; \
			echo "bin/$${main##*/}"; \
			(cd $$module && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(BIN)/$${main##*/} $$main); \
		done; \
	done

.PHONY: controlplane
controlplane: ## Build or find kube-apiserver, kube-controller-manager and etcd; the last line names their folder.
	@hack/controlplane.sh

# Go does not see that tests of e2e depend on files outside of their module: pages, charts and the modules' sources.
.PHONY: test
test: ## Run all tests, with the race detector, against a real control plane.
	@$(if $(RACE),,echo "No C compiler found: the tests run WITHOUT the race detector." >&2;) \
	$(SERVERS) failed=; \
	for module in $(MODULES); do \
		echo "== $$module"; \
		[[ $$module == ./e2e ]] && always=-count=1 || always=; \
		(cd $$module && go test $(RACE) $$always -timeout $(TEST_TIMEOUT) ./...) || failed+=" $$module"; \
	done; \
	if [[ -n $$failed ]]; then echo "FAILED:$$failed"; exit 1; fi

.PHONY: e2e
e2e: ## Run the scenarios (K8S=1.36.3 for another version of Kubernetes, E2E_FLAGS for more).
	@$(SERVERS) exec go -C e2e test $(RACE) -count=1 -timeout $(TEST_TIMEOUT) $(E2E_FLAGS) ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for half a minute (FUZZTIME for another time).
	@hack/fuzz.sh .

.PHONY: demo
demo: build ## Show a secret of AWS Secrets Manager become a Kubernetes Secret.
	@$(ASSETS) exec $(BIN)/dsctl demo

.PHONY: bench
bench: build ## Measure 1,000 ExternalSecrets over 50 namespaces beside the floor (BENCH_FLAGS for more).
	@$(SERVERS) exec $(BIN)/bench $(BENCH_FLAGS)

.PHONY: soak
soak: build ## Run the benchmark's steady load for 15 minutes and watch the queue (BENCH_FLAGS for more).
	@$(ASSETS) exec $(BIN)/bench --soak=15m $(BENCH_FLAGS)

.PHONY: generate
generate: $(TOOLS)/controller-gen ## Write the deep copies and the CRDs of every folder named apis, the rights of every module, and the charts.
	@for apis in $(APIS); do \
		echo "$$apis"; \
		(cd $$apis && $(TOOLS)/controller-gen paths=./... object crd:allowDangerousTypes=false output:crd:dir=crds); \
	done
	@go run ./hack/rights $(TOOLS)/controller-gen $(RIGHTS)
	@go run ./hack/charts

.PHONY: charts
charts: ## Package the charts into bin/charts; the same tree gives the same bytes.
	@hack/charts.sh

.PHONY: images
images: ## Write an OCI archive per module into bin/images and print the digests (IMAGE_VERSION, ARCHS, IMAGES).
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	go run ./hack/image -version '$(IMAGE_VERSION)' -archs '$(ARCHS)' -out $(BIN)/images \
		-revision "$$(test -n "$$(git status --porcelain)" || git rev-parse HEAD)" $(IMAGES)

.PHONY: new-provider
new-provider: $(TOOLS)/controller-gen ## Lay out the module provider-NAME with the Kind KIND (NAME=acme KIND=AcmeVault).
	@hack/new-provider.sh "$(NAME)" "$(KIND)"

.PHONY: verify
verify: build $(TOOLS)/actionlint ## Fail where generated files, go.mod files, imports or sizes are not as they should be.
	@hack/verify.sh $(MODULES)

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Run golangci-lint over every module.
	@for module in $(MODULES); do \
		[[ -n $$(cd $$module && go list ./... 2>/dev/null) ]] || continue; \
		echo "== $$module"; \
		(cd $$module && $(TOOLS)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...); \
	done

.PHONY: standalone
standalone: ## Build and test each module alone against a packed common (COMMON=v0.1.1 for another version).
	@$(SERVERS) COMMON=$(COMMON) hack/standalone.sh $(MODULES)

$(TOOLS)/actionlint: hack/actionlint/go.mod hack/actionlint/go.sum
	@mkdir -p $(TOOLS)
	@echo "bin/tools/actionlint"
	@CGO_ENABLED=0 go -C hack/actionlint build -trimpath -ldflags '-s -w' -o $@ $$(go -C hack/actionlint list tool)

# The other tools are pinned in the root go.mod. They are rebuilt when a pin changes.
$(TOOLS)/%: go.mod go.sum
	@mkdir -p $(TOOLS)
	@echo "bin/tools/$*"
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $@ $$(go list tool | grep '/$*$$')
