#!/usr/bin/env bash
# Builds what the demo runs and no more, and runs it. Arguments go to `dsctl demo`: with --kubeconfig it uses a cluster that
# is there, and no control plane is built.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib/servers.sh

for arg in "$@"; do
	case $arg in --kubeconfig | --kubeconfig=*) cluster=given ;; esac
done
if [[ -z ${cluster:-} ]]; then
	KUBEBUILDER_ASSETS=$(hack/controlplane.sh --demo)
	export KUBEBUILDER_ASSETS
fi
mkdir -p bin
# As `make build` does it.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false'
for program in dsctl:. provider-aws:provider-aws; do
	name=${program%%:*} module=${program#*:}
	package=. && [[ $module != . ]] || package=./cmd/dsctl
	go -C "$module" build -v -ldflags '-s -w' -o "$PWD/bin/$name" "$package" 2>&1 |
		progress "$name" "$(go -C "$module" list -deps "$package" 2>/dev/null | wc -l)"
done
exec bin/dsctl demo "$@"
