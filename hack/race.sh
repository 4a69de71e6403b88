#!/usr/bin/env bash
# Runs tests of concurrent code with the race detector. These are the unit tests of all packages of common and of the modules,
# except packages that only compute, and one scenario of each controller on a control plane. RACE is the command that runs
# tests. `make race` exports the servers. `make test-race` runs everything.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
# Rendering has no goroutines, and takes ten times as long with the race detector.
for module in common provider-* generator-*; do
	echo "== $module"
	packages=$(go -C "$module" list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... |
		grep -vE '/controlplane|/operatortest|/testenv|^[^ ]*/(render|password)[ /]' | cut -d ' ' -f 1)
	(cd "$module" && $RACE $packages) || failed=1
done

# One scenario of each controller: externalsecret, contributions, generated values, pushsecret, fanout, stores, presence;
# and the unit tests of the same packages.
echo "== common, on a control plane"
scenarios='TestSync|TestHangingStores|TestMixed|TestClaimMoves|TestRotation|TestNothingLeft|TestPush|TestPushFailover|TestGate|TestSharedDuties|TestProviderNotRunning|TestClusterExternalSecret|TestClusterPushSecret|TestFanOutOtherWriters'
units=$(go -C common list -f '{{range .TestGoFiles}}{{$.Dir}}/{{.}} {{end}}' ./operator ./internal/controllers/... |
	xargs grep -hoE '^func Test\w+' | cut -d ' ' -f 2 | paste -sd '|')
(cd common && $RACE -run "^($scenarios|$units)$" ./operator ./internal/controllers/...) || failed=1
(cd common && $RACE ./internal/watch ./internal/presence ./internal/dispatch ./internal/credentials) || failed=1
exit $failed
