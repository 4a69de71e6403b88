#!/usr/bin/env bash
# Runs the tests that depend on versions and on what is released. `make rehearse` runs it on each commit of a rehearsal.
set -euo pipefail
cd "$(dirname "$0")/.."

go run ./hack/release lock
git diff --exit-code # The versions in pages, locks and manifests are those of the tree.
go test ./charts ./hack/charts ./hack/release
go -C e2e test ./previous
go -C e2e test -tags long -timeout 30m -run '^(TestChartUpgrade|TestModuleVersions|TestSkewVersions)$' ./scenarios
