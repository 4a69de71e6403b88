#!/usr/bin/env bash
# Proves that each module stands alone: copies common and every module that requires it out
# of the tree, drops the `replace`, and builds and tests them there against common as a
# module proxy would serve it. COMMON is the version that it is served as.
set -euo pipefail
cd "$(dirname "$0")/.."

root=github.com/direct-secrets/direct-secrets
common=$root/common
version=${COMMON:-v0.1.0}
work=$(mktemp -d)

# What the module cache holds of this project is what an earlier run packed. The files are
# read-only there.
forget() {
	local cache folder
	cache=$(go env GOMODCACHE)
	for folder in "$cache/$root" "$cache/cache/download/$root"; do
		[[ -d $folder ]] || continue
		chmod -R u+w "$folder"
		rm -rf "$folder"
	done
}
trap 'forget; rm -rf "$work"' EXIT
forget

go build -o "$work/modzip" ./hack/modzip
"$work/modzip" common "$common" "$version" "$work/proxy"

modules=(common)
for mod in */go.mod; do
	module=${mod%/go.mod}
	[[ $module == common || $module == e2e ]] && continue
	if grep -q "$common v" "$mod"; then modules+=("$module"); fi
done

# The checksum database does not know what was packed just now. -trimpath without cgo is
# how `make build` compiles, so its results are used again.
GOPROXY="file://$work/proxy,$(go env GOPROXY)"
# The go command keeps an index of what a version imports, and this version changes.
export GODEBUG=goindex=0
export GOPROXY GONOPROXY=none GONOSUMDB="$root/*" GOFLAGS='-mod=mod -trimpath -buildvcs=false' CGO_ENABLED=0 GOWORK=off

for module in "${modules[@]}"; do
	echo "== $module, with common $version"
	mkdir -p "$work/modules"
	cp -R "$module" "$work/modules/$module"
	cd "$work/modules/$module"
	if [[ $module != common ]]; then
		go mod edit -dropreplace="$common" -require="$common@$version"
		if grep -q "$root/.*=>" go.mod; then
			echo "$module/go.mod replaces another module of this tree" >&2
			exit 1
		fi
	fi
	go build ./...
	go test -short -count=1 -timeout 30m ./... # `make test` has gone through all that -short leaves out.
	mv "$work/modules/$module" "$work/done-$module" # nothing may lean on a neighbour
	cd "$OLDPWD"
done
