#!/usr/bin/env bash
# Fails unless the tree is ready for the release VERSION. Every module must require that version of common, which must be
# tagged and unchanged since. Every chart must have that version. The upgrade test must start from the previous release.
# Usage: release-check.sh v0.1.1
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || { echo "VERSION is '$version'; it must be such as v0.1.1" >&2; exit 1; }
failed=0
fail() {
	echo "FAIL: $*" >&2
	failed=1
}

for mod in go.mod */go.mod; do
	[[ $mod == common/go.mod ]] || grep -q "direct-secrets/common $version\$" "$mod" || fail "$mod does not require common $version"
done
for chart in charts/*/Chart.yaml; do
	others=$(grep -E '^[- ]*(version|appVersion):' "$chart" | grep -vE ": *[\"']?v?${version#v}[\"']?\$" || true)
	[[ -z $others ]] || fail "$chart has another version: $others"
done
if ! git rev-parse --quiet --verify "refs/tags/common/$version" >/dev/null; then
	fail "the tag common/$version is missing: common is tagged first, and then moved to in every module"
elif ! git diff --quiet "refs/tags/common/$version" HEAD -- common; then
	fail "common has changed since the tag common/$version: tag its next version"
fi
last=$(git tag --list 'v*' --sort=-version:refname --merged HEAD | grep -vFx -- "$version" | head -1 || true)
upgrade=e2e/scenarios/chart_upgrade_test.go
if [[ -n $last ]] && ! grep -q "^const previous = \"$(git rev-parse "$last^{commit}")\"" "$upgrade"; then
	fail "previous in $upgrade is not the commit of $last: the upgrade from the last release is not tested"
fi
exit $failed
