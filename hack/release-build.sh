#!/usr/bin/env bash
# Builds what is due, and nothing else: images and charts of modules, and for the umbrella chart also the chart of the CRDs and
# dsctl. FOLDER gets the plan in plan.json, and the results in images, charts and dsctl-archives. It fails unless the tree has
# the versions of the plan. Usage: release-build.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
mkdir -p "$folder/images" "$folder/charts" "$folder/dsctl-archives"
go run ./hack/release check >"$folder/plan.json"
rm -rf bin/images bin/charts bin/dsctl-archives
make charts
jq -r '.[] | "\(.unit) \(.to)"' "$folder/plan.json" | while read -r unit version; do
	version=${version#v}
	case $unit in
	common) ;; # A tag releases it.
	direct-secrets)
		cp "bin/charts/$unit-$version.tgz" "bin/charts/crds-$version.tgz" "$folder/charts"
		make dsctl IMAGE_VERSION="$version" </dev/null
		cp bin/dsctl-archives/* "$folder/dsctl-archives"
		;;
	*)
		cp "bin/charts/$unit-$version.tgz" "$folder/charts"
		make images IMAGES="$unit" IMAGE_VERSION="$version" IMAGE_FLAGS=-fips </dev/null
		cp "bin/images/$unit"* "$folder/images"
		;;
	esac
done
