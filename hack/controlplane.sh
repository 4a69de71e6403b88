#!/usr/bin/env bash
# Finds kube-apiserver, kube-controller-manager and etcd, and prints a folder for KUBEBUILDER_ASSETS as the last line of
# stdout. Everything else goes to stderr. Each of the three comes from the first of these sources that has it:
#
#   1. KUBEBUILDER_ASSETS, if it is set
#   2. the cache folder of the user
#   3. envtest's published binaries, if they can be downloaded (they do not include kube-controller-manager)
#   4. a build from Go modules
#
# Programs that are not in KUBEBUILDER_ASSETS are stored in the cache folder, where the package controlplane finds them, too.
#
#   --demo     omits kube-controller-manager, which takes a minute to build, and which the demo does not need
#   --version  prints only the version in the name of the cache folder
#
# K8S, if set, selects one of the versions of Kubernetes in e2e/servers, such as 1.33.13; KUBEBUILDER_ASSETS is then ignored.
# ENVTEST_INDEX, if set, is the address of an index of published binaries, for a mirror.
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

# published downloads envtest's binaries and moves those of the programs $2 and so on into folder $1.
published() {
	local to=$1 from log program
	shift
	if [[ $* == kube-controller-manager ]]; then return; fi
	log=$(mktemp)
	# setup-envtest checks the checksums. The timeout includes its compilation.
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

# build writes the programs $2 and so on to folder $1.
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
