#!/usr/bin/env bash
# Builds, vets and tests each module alone, and checks that an update of common changes only versions. The arguments are the folders
# of the modules. COMMON is the version of common, or "next" for the next patch; the default is the version that the modules require.
#
# First every go.mod in a copy of the tree is updated to that common and tidied, as Renovate does it. Then common and every
# module that requires it are moved out of that copy, and tested without their `replace`, with common from a module
# proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib/tree.sh

root=github.com/direct-secrets/direct-secrets
common=$root/common
required=$(go list -m -f '{{.Version}}' "$common")
version=${COMMON:-$required}
if [[ $version == next ]]; then version=${required%.*}.$((${required##*.} + 1)); fi
work=$(mktemp -d)

# The modules of this project in the module cache come from an earlier run. The files are read-only
# there.
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

copy_tree "$work/tree"
requires=()
for mod in go.mod */go.mod; do
	if grep -q "$common v" "$mod"; then requires+=("$(dirname "$mod")"); fi
done
# All are updated before the first is tidied, because the modules of the tree require each other.
for module in "${requires[@]}"; do
	go -C "$work/tree/$module" mod edit -require="$common@$version"
done
for module in "${requires[@]}"; do
	go -C "$work/tree/$module" mod tidy
	if ! diff <(sed "s|$common v[^ ]*|$common $version|" "$module/go.mod") "$work/tree/$module/go.mod" ||
		! diff "$module/go.sum" "$work/tree/$module/go.sum"; then
		echo "A bump to common $version changes more of $module/go.mod and go.sum than that version." >&2
		exit 1
	fi
done

modules=()
for module in "$@"; do
	module=${module#./}
	[[ $module == . || $module == e2e || $module == migrate ]] || modules+=("$module")
done

# The checksum database does not know the modules that were just packed. -trimpath without cgo
# is the same as in `make build`, so its results are reused.
GOPROXY="file://$work/proxy,$(go env GOPROXY)"
# The go command caches the imports of a version, but this version changes.
export GODEBUG=goindex=0
export GOPROXY GONOPROXY=none GONOSUMDB="$root/*" GOFLAGS='-mod=readonly -trimpath -buildvcs=false' CGO_ENABLED=0 GOWORK=off

for module in "${modules[@]}"; do
	echo "== $module, with common $version"
	mkdir -p "$work/modules"
	mv "$work/tree/$module" "$work/modules/$module"
	cd "$work/modules/$module"
	if [[ $module != common ]]; then
		go mod edit -dropreplace="$common"
		if grep -q "$root/.*=>" go.mod; then
			echo "$module/go.mod replaces another module of this tree" >&2
			exit 1
		fi
		go mod tidy # adds common to go.sum
	fi
	go build ./...
	go vet ./...
	go test -count=1 -timeout 30m ./...
	mv "$work/modules/$module" "$work/done-$module" # so that no other module can use it
	cd "$OLDPWD"
done
