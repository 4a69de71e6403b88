#!/usr/bin/env bash
# Adds a built site to the sites of other versions.
#
#	docs-publish.sh BUILT NAME PAGES
#
# BUILT is the folder that `make docs` has written. NAME is the version: main, or v0.1 for v0.1.3. PAGES is the folder that the
# server has at /direct-secrets/. The script writes versions.json for the menu of versions. It redirects a URL without a version to
# the newest release, or to main before the first release.
set -euo pipefail

built=$1 name=$2 pages=$3
if [[ ! $name =~ ^(main|v[0-9]+\.[0-9]+)$ ]]; then echo "the version is main, or one such as v0.1, not $name" >&2; exit 1; fi

rm -rf "${pages:?}/$name"
cp -R "$built" "$pages/$name"
cd "$pages"
releases=$(find . -maxdepth 1 -type d -name 'v*' -printf '%f\n' | sort -rV)
latest=$(head -n 1 <<<"${releases:-main}")
printf '["main"%s]\n' "$(for release in $releases; do printf ', "%s"' "$release"; done)" >versions.json
printf '<!doctype html>\n<meta charset="utf-8">\n<title>direct-secrets</title>\n<meta http-equiv="refresh" content="0; url=%s/">\n<a href="%s/">direct-secrets %s</a>\n' \
	"$latest" "$latest" "$latest" >index.html
cp "$latest/404.html" 404.html
touch .nojekyll # GitHub Pages serves the files unchanged, without Jekyll.
