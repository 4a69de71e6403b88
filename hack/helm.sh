#!/usr/bin/env bash
# Builds or finds the Helm that checks, packages and installs the charts, and prints its path as the last
# line of stdout. Everything else goes to stderr.
#
# HELM, where set, names such a program.
# With --version it prints only what the cache folder is named after.
set -euo pipefail
source "$(dirname "$0")/lib/servers.sh"

version=$(pinned helm helm.sh/helm/v4)
if [[ ${1:-} == --version ]]; then
	echo "$version"
	exit 0
fi

if [[ -n ${HELM:-} ]]; then
	if [[ ! -x $HELM ]]; then
		echo "HELM is $HELM, which is no program." >&2
		echo "Correct it, or unset it to have Helm built." >&2
		exit 1
	fi
	echo "$HELM"
	exit 0
fi

build() {
	# Without its version Helm tells a chart that it is v4.3.
	compile helm -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" -o "$1/helm" helm.sh/helm/v4/cmd/helm
}
folder=$(cached helm "$version")
once "Helm $version" "$folder" helm
echo "$folder/helm"
