#!/usr/bin/env bash
# Runs the tests that depend on versions and on what is released. `make rehearse` runs it on each commit of a rehearsal.
set -euo pipefail
cd "$(dirname "$0")/.."

go run ./hack/release lock
git diff --exit-code # The versions in pages, locks and manifests are those of the tree.
# The cache of test results does not know the tags.
go test -count=1 ./charts ./hack/charts ./hack/release
go -C e2e test -count=1 ./previous
go -C e2e test -count=1 -tags long -timeout 30m -run '^(TestChartUpgrade|TestModuleVersions)$' ./scenarios
