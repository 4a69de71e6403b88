#!/usr/bin/env bash
# Builds or finds kube-apiserver, kube-controller-manager and etcd, and prints the
# folder that holds them as the last line of stdout. Everything else goes to stderr.
#
# K8S, where set, chooses a version of Kubernetes, such as 1.36.3, of those that e2e/servers has.
# Else KUBEBUILDER_ASSETS, where set, names a folder that has the three already.
# With --version it prints only what the cache folder is named after.
set -euo pipefail
source "$(dirname "$0")/lib/servers.sh"

binaries=(kube-apiserver kube-controller-manager etcd)

server=kubernetes
if [[ -n ${K8S:-} ]]; then
	server= known=
	for folder in "$servers"/kubernetes*; do
		version=$(pinned "${folder##*/}" k8s.io/kubernetes)
		known+=" ${version#v}"
		if [[ ${version#v} == "${K8S#v}" ]]; then server=${folder##*/}; fi
	done
	if [[ -z $server ]]; then
		echo "K8S is $K8S; it must be one of:$known" >&2
		exit 1
	fi
fi
kubernetes=$(pinned "$server" k8s.io/kubernetes)
etcd=$(pinned etcd go.etcd.io/etcd/server/v3)
version=$kubernetes-etcd${etcd#v}
if [[ ${1:-} == --version ]]; then
	echo "$version"
	exit 0
fi

if [[ -n ${KUBEBUILDER_ASSETS:-} && -z ${K8S:-} ]]; then
	lacks=$(missing "$KUBEBUILDER_ASSETS" "${binaries[@]}")
	if [[ -n $lacks ]]; then
		echo "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which lacks: $lacks" >&2
		echo "Put them there, or unset KUBEBUILDER_ASSETS to have them built." >&2
		exit 1
	fi
	(cd "$KUBEBUILDER_ASSETS" && pwd)
	exit 0
fi

build() {
	local major minor package flags='-s -w'
	# The API server refuses to start when its version does not parse.
	IFS=. read -r major minor _ <<<"${kubernetes#v}"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=$kubernetes -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	done
	compile etcd -ldflags '-s -w' -o "$1/etcd" go.etcd.io/etcd/server/v3
	compile "$server" -ldflags "$flags" -o "$1/" \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager
}
folder=$(cached controlplane "$version")
once "the control plane ($kubernetes, etcd $etcd)" "$folder" "${binaries[@]}"
echo "$folder"
