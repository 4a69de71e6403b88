#!/usr/bin/env bash
# Runs tests of concurrent code with the race detector: the unit tests of each package that has goroutines, locks or atomic
# values, and one scenario of each controller on a control plane. Rendering is slow and has only caches; it is left to
# `make test-race`, which runs everything. RACE is the command that runs tests. `make race` exports the servers.
set -euo pipefail
cd "$(dirname "$0")/.."

# matches runs a command like grep, and accepts that it finds nothing.
matches() { "$@" || (($? == 1)); }

failed=0
for module in common provider-* generator-*; do
	concurrent=$(cd "$module" && matches git grep -lE '\bgo (func|[a-z.]+\()|\b(sync|errgroup|singleflight|atomic)\.' -- '*.go' ':!*_test.go' |
		xargs -r -n 1 dirname | sort -u | sed 's=^=/=')
	[[ -n $concurrent ]] || continue
	listed=$(go -C "$module" list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...)
	packages=$(matches grep -vE '/controlplane|/operatortest|/testenv|^[^ ]*/(render|emulator|conformance|[a-z]+test)[ /]' <<<"$listed" |
		cut -d ' ' -f 1 | matches grep -E "($(paste -sd '|' <<<"$concurrent"))\$")
	[[ -n $packages ]] || continue
	echo "== $module"
	(cd "$module" && $RACE $packages) || failed=1
done

# One scenario of each controller: externalsecret, contributions, generated values, pushsecret, fanout, stores, presence;
# and the unit tests of the same packages, without simulations, which take one step at a time.
echo "== common, on a control plane"
scenarios='TestSync|TestHangingStores|TestMixed|TestTwoModules|TestRotation|TestNothingLeft|TestPush|TestPushFailover|TestGate|TestSharedDuties|TestProviderNotRunning|TestClusterExternalSecret|TestClusterPushSecret|TestFanOutOtherWriters'
units=$(go -C common list -f '{{range .TestGoFiles}}{{$.Dir}}/{{.}} {{end}}' ./operator ./internal/controllers/... |
	xargs grep -hoE '^func Test\w+' | cut -d ' ' -f 2 | grep -vE '^Test(Interleavings|FindsFaults|Modules|Renames)$' | paste -sd '|')
(cd common && $RACE -run "^($scenarios|$units)$" ./operator ./internal/controllers/...) || failed=1
(cd common && $RACE ./internal/watch ./internal/presence ./internal/dispatch ./internal/credentials) || failed=1
exit $failed
