#!/usr/bin/env bash
# Finds kube-apiserver, kube-controller-manager and etcd, and prints a folder for KUBEBUILDER_ASSETS as the last line of
# stdout. Everything else goes to stderr. Each of the three is taken from where it is found first:
#
#   1. KUBEBUILDER_ASSETS, where it is set
#   2. the cache folder of the user
#   3. envtest's published binaries, where they can be downloaded (not kube-controller-manager, which they lack)
#   4. a build from Go modules
#
# What is not in KUBEBUILDER_ASSETS comes into the cache folder, where the package controlplane looks for it, too.
#
#   --demo     leaves out kube-controller-manager, which takes a minute to build and which the demo can do without
#   --version  prints only what the cache folder is named after
#
# K8S, where set, chooses a version of Kubernetes, such as 1.33.13, of those that e2e/servers has; KUBEBUILDER_ASSETS does not
# count then. ENVTEST_INDEX, where set, is the address of the index of published binaries, for a mirror.
set -euo pipefail
source "$(dirname "$0")/lib/servers.sh"

binaries=(etcd kube-apiserver kube-controller-manager)

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
	unset KUBEBUILDER_ASSETS
fi
kubernetes=$(pinned "$server" k8s.io/kubernetes)
etcd=$(pinned etcd go.etcd.io/etcd/server/v3)
version=$kubernetes-etcd${etcd#v}
case ${1:-} in
--version)
	echo "$version"
	exit 0
	;;
--demo) binaries=(etcd kube-apiserver) ;;
esac

# published downloads envtest's binaries and puts those of $2 and so on that it has into folder $1.
published() {
	local to=$1 from log program
	shift
	if [[ $* == kube-controller-manager ]]; then return; fi
	log=$(mktemp)
	# setup-envtest checks the checksums. The time is for compiling it, too.
	from=$(timeout "${ENVTEST_TIMEOUT:-90}" go -C "$(dirname "$servers")/../hack/setup-envtest" tool setup-envtest use "${kubernetes#v}" \
		--bin-dir "$to/envtest" -p path ${ENVTEST_INDEX:+--index "$ENVTEST_INDEX"} 2>"$log") ||
		{ echo "envtest's binaries cannot be downloaded: $(tail -n 1 "$log")" >&2 && rm "$log" && return; }
	rm "$log"
	for program in "$@"; do
		if [[ -x $from/$program ]]; then
			mv "$from/$program" "$to/$program"
			echo "Downloaded $program of envtest $kubernetes." >&2
		fi
	done
	chmod -R u+w "$to/envtest"
	rm -rf "$to/envtest"
}

# build puts the programs $2 and so on into folder $1.
build() {
	local to=$1 program flags
	shift
	published "$to" "$@"
	flags=$(kubernetes_flags "$kubernetes")
	for program in $(missing "$to" "$@"); do
		case $program in
		etcd) compile etcd etcd -ldflags '-s -w' -o "$to/etcd" go.etcd.io/etcd/server/v3 ;;
		*) compile "$program" "$server" -ldflags "$flags" -o "$to/" "k8s.io/kubernetes/cmd/$program" ;;
		esac
	done
}

lacks=("${binaries[@]}")
if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
	read -ra lacks <<<"$(missing "$KUBEBUILDER_ASSETS" "${binaries[@]}")"
fi
folder=$(cached controlplane "$version")
if ((${#lacks[@]} > 0)); then
	once "${lacks[*]} ($kubernetes, etcd $etcd)" "$folder" "${lacks[@]}"
fi
if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then folder=$(cd "$KUBEBUILDER_ASSETS" && pwd); fi
echo "$folder"
