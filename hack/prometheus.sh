#!/usr/bin/env bash
# Builds or finds the Prometheus that a test loads the alerts and the dashboard into, and prints its path as
# the last line of stdout. Everything else goes to stderr. promtool lies beside it.
#
# PROMETHEUS, where set, names such a program.
# With --version it prints only what the cache folder is named after.
set -euo pipefail
source "$(dirname "$0")/lib/servers.sh"

version=$(pinned prometheus github.com/prometheus/prometheus)
if [[ ${1:-} == --version ]]; then
	echo "$version"
	exit 0
fi

if [[ -n ${PROMETHEUS:-} ]]; then
	lacks=$(missing "$(dirname "$PROMETHEUS")" "$(basename "$PROMETHEUS")" promtool)
	if [[ -n $lacks ]]; then
		echo "PROMETHEUS is $PROMETHEUS; there is no $lacks" >&2
		echo "Correct it, or unset it to have Prometheus and promtool built." >&2
		exit 1
	fi
	echo "$PROMETHEUS"
	exit 0
fi

# What discovers targets in clouds is left out: a test names its own. So are the pages, which the module does not have.
build() {
	compile prometheus -tags remove_all_sd -ldflags '-s -w' -o "$1/" \
		github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool
}
folder=$(cached prometheus "$version")
once "Prometheus $version" "$folder" prometheus promtool
echo "$folder/prometheus"
