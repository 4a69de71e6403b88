#!/usr/bin/env bash
# Checks renovate.json with Renovate's own validator, and checks Renovate's updates with it (hack/renovate/bump.mjs). The
# version is pinned in hack/renovate/package-lock.json. The first run installs it into the user's cache folder.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib/tree.sh

command -v npm >/dev/null || { echo "npm is needed for Renovate: install Node 20 or newer" >&2; exit 1; }

version=$(sed -n 's/.*"renovate": "\(.*\)".*/\1/p' hack/renovate/package.json)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/direct-secrets/renovate/$version
if ! cmp -s hack/renovate/package-lock.json "$folder/installed.json"; then
	echo "Installing renovate $version into $folder; this takes some minutes and happens once."
	mkdir -p "$folder"
	cp hack/renovate/package.json hack/renovate/package-lock.json hack/renovate/.npmrc "$folder"
	npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund
	cp hack/renovate/package-lock.json "$folder/installed.json" # last, because it marks a complete installation
fi
"$folder/node_modules/.bin/renovate-config-validator" --strict renovate.json

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_tree "$work/tree"
node hack/renovate/bump.mjs "$folder/node_modules/.bin/renovate" "$work/tree"
