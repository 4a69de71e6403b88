#!/usr/bin/env bash
# Builds only the programs of the demo, and runs it. Arguments are passed to `dsctl demo`: with --kubeconfig it uses an
# existing cluster, and no control plane is built.
set -euo pipefail
if [[ $(uname -s) != Linux ]]; then
	echo "The demo needs Linux, because it starts the servers of a control plane. Use a virtual machine or a container with Go, make and git." >&2
	exit 1
fi
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
# The same settings as in `make build`.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false'
# build builds package $3 of the module in folder $2 as bin/$1.
build() {
	go -C "$2" build -v -ldflags '-s -w' -o "$PWD/bin/$1" "$3" 2>&1 | progress "$1" "$(go -C "$2" list -deps "$3" 2>/dev/null | wc -l)"
}
build dsctl . ./cmd/dsctl
build provider-aws provider-aws .
exec bin/dsctl demo "$@"
