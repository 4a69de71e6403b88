#!/usr/bin/env bash
# Builds or finds the commands of the charts' users, which tests run: kubectl, helm, and the oldest supported helm as helm-3.
# Prints their folder as the last line of stdout. Everything else goes to stderr.
#
# TEST_COMMANDS, if set, is such a folder.
set -euo pipefail
source "$(dirname "$0")/lib/servers.sh"

if [[ -n ${TEST_COMMANDS:-} ]]; then
	echo "$TEST_COMMANDS"
	exit 0
fi

kubernetes=$(pinned kubernetes k8s.io/kubernetes)
helm=$(pinned helm helm.sh/helm/v4)
oldest=$(pinned helm-3 helm.sh/helm/v3)

# build writes the programs $2 and so on to folder $1.
build() {
	local to=$1 program
	shift
	for program in "$@"; do
		case $program in
		kubectl) compile kubectl kubernetes -ldflags "$(kubernetes_flags "$kubernetes")" -o "$to/" k8s.io/kubernetes/cmd/kubectl ;;
		helm) compile helm helm -ldflags '-s -w' -o "$to/" helm.sh/helm/v4/cmd/helm ;;
		helm-3) compile helm-3 helm-3 -ldflags '-s -w' -o "$to/helm-3" helm.sh/helm/v3/cmd/helm ;;
		esac
	done
}

folder=$(cached commands "kubectl-$kubernetes-helm-$helm-$oldest")
once "kubectl $kubernetes, helm $helm and $oldest" "$folder" kubectl helm helm-3
echo "$folder"
