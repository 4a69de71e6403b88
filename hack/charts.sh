#!/usr/bin/env bash
# Packages the charts into bin/charts, or the folder that is the argument. SOURCE_DATE_EPOCH, 0 unless set, is the
# time of all files in them, so that the same tree gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-bin/charts}
helm=$(hack/helm.sh)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf "$out"
mkdir -p "$out"
for meta in charts/*/Chart.yaml; do
	chart=$(dirname "$meta") name=$(basename "$(dirname "$meta")")
	if grep -q '^type: library' "$meta"; then continue; fi
	# Helm tells of every link that it follows; those who look for errors need not read that.
	"$helm" package "$chart" --destination "$work" > /dev/null 2> >(grep -v 'found symbolic link' >&2)
	package=$(echo "$work/$name"-[0-9]*.tgz)
	# Helm packs the charts inside a chart in an order that changes.
	tar -xzf "$package" -C "$work"
	tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		-cf - -C "$work" "$name" | gzip -n >"$out/$(basename "$package")"
	echo "$out/$(basename "$package")"
done
