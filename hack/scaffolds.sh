#!/usr/bin/env bash
# Lays out a new provider and a new generator in another repository, and runs their tests.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
KUBEBUILDER_ASSETS=$(hack/controlplane.sh)
export KUBEBUILDER_ASSETS
failed=0

fail() {
	echo "FAIL: $*" >&2
	failed=1
}

for new in "provider acme AcmeVault" "generator acme AcmeToken"; do
	read -r type name kind <<<"$new"
	{ hack/new-provider.sh "$type" "$name" "$kind" "$work" "example.com/acme/$type-$name" && go -C "$work/$type-$name" test ./...; } >"$work/new" 2>&1 ||
		{ cat "$work/new"; fail "what \`make new-$type\` lays out does not pass its tests"; }
	if grep -rn "$name[.]direct-secrets[.]io" "$work/$type-$name"; then fail "what \`make new-$type\` lays out for another repository is in a group below direct-secrets.io"; fi
	if hack/new-provider.sh "$type" "$name" "$kind" "$work/hosted" "github.com/acme/$type-$name" 2>/dev/null; then fail "\`make new-$type\` takes the domain of a host of code for that of the module"; fi
done
exit $failed
