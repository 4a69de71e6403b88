#!/usr/bin/env bash
# Builds or finds kube-apiserver, kube-controller-manager and etcd, and prints the
# folder that holds them as the last line of stdout. Everything else goes to stderr.
#
# KUBEBUILDER_ASSETS, where set, names a folder that has the three already.
# With --version it prints only what the cache folder is named after.
set -euo pipefail

servers=$(cd "$(dirname "$0")/../e2e/servers" && pwd)
binaries=(kube-apiserver kube-controller-manager etcd)

# missing prints the binaries that the folder $1 lacks.
missing() {
	local b
	for b in "${binaries[@]}"; do
		[[ -x $1/$b ]] || printf '%s ' "$b"
	done
}

# version prints the version that the go.mod in folder $1 pins for module $2.
version() {
	awk -v module="$2" '$1 == "require" { $1 = $2; $2 = $3 } $1 == module { print $2; exit }' "$servers/$1/go.mod"
}

kubernetes=$(version kubernetes k8s.io/kubernetes)
etcd=$(version etcd go.etcd.io/etcd/server/v3)
if [[ ${1:-} == --version ]]; then
	echo "$kubernetes-etcd${etcd#v}"
	exit 0
fi

if [[ -n ${KUBEBUILDER_ASSETS:-} ]]; then
	lacks=$(missing "$KUBEBUILDER_ASSETS")
	if [[ -n $lacks ]]; then
		echo "KUBEBUILDER_ASSETS is $KUBEBUILDER_ASSETS, which lacks: $lacks" >&2
		echo "Put them there, or unset KUBEBUILDER_ASSETS to have them built." >&2
		exit 1
	fi
	(cd "$KUBEBUILDER_ASSETS" && pwd)
	exit 0
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/direct-secrets/controlplane/$kubernetes-etcd${etcd#v}

if [[ -z $(missing "$folder") ]]; then
	echo "$folder"
	exit 0
fi

mkdir -p "$folder"
# A second caller waits here instead of building the same again. Where there is no
# flock, both build; the renames below keep that safe, too.
if command -v flock >/dev/null; then
	exec 9>"$folder/.lock"
	flock -n 9 || { echo "Waiting for another build of the control plane." >&2 && flock 9; }
fi
build=$(mktemp -d "$folder/.build.XXXXXX")
trap 'rm -rf "$build"' EXIT

# The servers run on this machine, whatever the caller's environment is set to build for.
export CGO_ENABLED=0 GOOS='' GOARCH='' GOFLAGS='-mod=readonly -buildvcs=false -trimpath' GOWORK=off

# progress turns the package names of `go build -v` into a line now and then.
progress() {
	awk -v name="$1" '
		/^go: downloading/ { if (++got % 50 == 0) say(got " modules downloaded"); next }
		/^[A-Za-z0-9.\/_-]+$/ { if (++built % 100 == 0) say(built " packages compiled"); next }
		{ print; fflush() }
		function say(what) { print "  " name ": " what; fflush() }' >&2
}

# The API server refuses to start when its version does not parse.
IFS=. read -r major minor _ <<<"${kubernetes#v}"
flags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags+=" -X $package.gitVersion=$kubernetes -X $package.gitMajor=$major -X $package.gitMinor=$minor"
done

if [[ -n $(missing "$folder") ]]; then
	echo "Building the control plane ($kubernetes, etcd $etcd) into $folder." >&2
	echo "This takes some minutes and happens once." >&2
	go -C "$servers/etcd" build -v -ldflags '-s -w' -o "$build/etcd" go.etcd.io/etcd/server/v3 2>&1 | progress etcd
	go -C "$servers/kubernetes" build -v -ldflags "$flags" -o "$build/" \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager 2>&1 | progress kubernetes
	for b in "${binaries[@]}"; do
		mv -f "$build/$b" "$folder/$b"
	done
fi
echo "$folder"
