# mcptest-operator. `make` lists what there is. It needs Go, make and git; everything else is built from pinned Go modules.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMAGE   ?= ghcr.io/mcptest/mcptest-operator:dev
export IMAGE

# Pinned tools. Those whose dependencies clash have a module of their own.
CONTROLLER_GEN := go tool -modfile=hack/tools/go.mod controller-gen
CRD_REF_DOCS   := go tool -modfile=hack/tools/go.mod crd-ref-docs
KUSTOMIZE      := go tool -modfile=hack/tools/kustomize/go.mod kustomize
HELM           := go tool -modfile=hack/tools/helm/go.mod helm
GOLANGCI_LINT  := go tool -modfile=hack/tools/golangci-lint/go.mod golangci-lint

# The files that `make generate` writes.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml \
	charts/mcptest-operator/templates/crds charts/mcptest-operator/files/rules.yaml docs/reference/crd.md \
	engine/convert/mcptest/schema.json
LDFLAGS := -s -w -X main.version=$(VERSION) -X github.com/mcptest/mcptest-operator/cmd/kubectl-mcptest/versioncmd.version=$(VERSION)
GO_BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)"

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Start a real local cluster, run examples/ in it, print the report, stop
	@bash hack/local.sh announce
	@$(MAKE) --no-print-directory build
	@bash hack/local.sh demo

.PHONY: up
up: build ## Start a local cluster with the operator to play with, and print how to reach it
	bash hack/local.sh up

.PHONY: down
down: bin/cluster ## Stop what `make up` started
	bash hack/local.sh down

##@ Build

.PHONY: build
build: bin/cluster ## Build the programs into bin/, and what the image holds into dist/image/
	$(GO_BUILD) -o bin/ ./cmd/manager ./cmd/runner ./cmd/kubectl-mcptest
	$(GO_BUILD) -o bin/fakejudge ./hack/fakejudge/cmd
	mkdir -p dist/image
	cp bin/manager bin/runner dist/image/

.PHONY: bin/cluster
bin/cluster:
	cd hack/cluster && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o ../../bin/cluster .

.PHONY: image
image: build ## Build the image with buildah or docker, for Linux, as dist/image.tar
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "$(LDFLAGS)" -o dist/image/ ./cmd/manager ./cmd/runner
	rm -f dist/image.tar
	if command -v buildah >/dev/null; then \
		buildah bud --label org.opencontainers.image.version=$(VERSION) -t $(IMAGE) -f Dockerfile dist/image && buildah push $(IMAGE) docker-archive:dist/image.tar:$(IMAGE); \
	elif command -v docker >/dev/null; then \
		docker build --label org.opencontainers.image.version=$(VERSION) -t $(IMAGE) -f Dockerfile dist/image && docker save -o dist/image.tar $(IMAGE); \
	else echo "make image needs buildah or docker" >&2; exit 1; fi

.PHONY: generate
generate: ## Write the generated files: deep copies, CRDs, schema, role, chart, reference
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	$(CONTROLLER_GEN) crd:allowDangerousTypes=true,maxDescLen=2000 paths=./api/... output:crd:dir=config/crd/bases
	go run ./hack/crdgen config/crd/bases/*.yaml
	go run ./hack/schemagen config/crd/bases/eval.mcptest.dev_evals.yaml engine/convert/mcptest/schema.json
	$(CONTROLLER_GEN) rbac:roleName=mcptest-operator paths=./controllers/... output:rbac:dir=config/rbac
	go run ./hack/chartgen config charts/mcptest-operator
	$(MAKE) --no-print-directory docs

.PHONY: docs
docs: ## Write docs/reference/crd.md from the API types
	mkdir -p docs/reference
	$(CRD_REF_DOCS) --source-path=api --config=hack/crd-ref-docs.yaml --renderer=markdown --output-path=docs/reference/crd.md --log-level=ERROR

##@ Check

.PHONY: generate-check
generate-check: ## Fail when `make generate` changes a file
	@sums() { find $(GENERATED) -type f 2>/dev/null | LC_ALL=C sort | xargs cksum; }; \
	before=$$(sums); $(MAKE) --no-print-directory generate; after=$$(sums); \
	if [[ $$before != "$$after" ]]; then \
		diff <(echo "$$before") <(echo "$$after") >&2 || true; \
		echo "generated files were not up to date; they are now: look at them and commit them" >&2; exit 1; fi

.PHONY: verify
verify: generate-check vet lint chart ## Check generated files against git, vet, lint, check the chart
	git diff --exit-code -- $(GENERATED)

.PHONY: vet
vet:
	go vet ./...
	cd hack/cluster && go vet ./...

.PHONY: lint
lint: ## Run golangci-lint
	$(GOLANGCI_LINT) run

.PHONY: chart
chart: ## Lint the chart, and render it and the kustomizations
	$(HELM) lint --strict charts/mcptest-operator
	$(HELM) template mcptest-operator charts/mcptest-operator -n mcptest-system >/dev/null
	for dir in crd default samples; do $(KUSTOMIZE) build config/$$dir >/dev/null; done

.PHONY: test
test: generate-check vet build ## Check generated files, vet, units, then stories on a local cluster
	export KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(bin/cluster build)}; go test $$(go list ./... | grep -v /test/stories)
	cd hack/cluster && ../../bin/cluster run -- go test ./...
	$(MAKE) --no-print-directory stories

.PHONY: stories
stories: ## Run the stories on a local cluster, with the binaries in bin/
	bin/cluster run --node process --image $(IMAGE)=$(CURDIR)/dist/image -- go test ./test/stories -timeout 20m

.PHONY: perf
perf: build ## Measure whole runs on a local cluster (docs/performance.md)
	go build -o bin/perf ./test/perf
	bin/cluster run --node process --image $(IMAGE)=$(CURDIR)/dist/image -- bin/perf

.PHONY: perf-eval
perf-eval: ## Measure whole runs without a cluster (docs/performance.md)
	$(GO_BUILD) -o bin/ ./cmd/kubectl-mcptest
	go run ./test/perf/eval

.PHONY: e2e
e2e: build ## Install the chart on a node with containerd (root, Linux)
	bash test/e2e/run.sh

.PHONY: bench
bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem $$(go list ./... | grep -v '^github.com/mcptest/mcptest-operator/test/') ./test/perf

FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: ## Fuzz every fuzz test for FUZZTIME (10s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r -n1 dirname | LC_ALL=C sort -u | while read -r dir; do \
		for f in $$(grep -h -o '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | cut -c6-); do \
			echo "$$dir $$f"; (cd "$$dir" && go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) .); \
		done; done

.PHONY: clean
clean: ## Remove what was built, but not the control plane in bin/k8s
	find bin -mindepth 1 -maxdepth 1 ! -name k8s -exec rm -rf {} + 2>/dev/null || true
	rm -rf dist cover.out
