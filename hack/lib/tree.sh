# A function for the scripts that use a copy of the tree, which source this file.

# copy_tree copies all files that are tracked, or would be, to the folder $1. It runs in the root of the tree.
copy_tree() {
	mkdir -p "$1"
	git ls-files -coz --exclude-standard --deduplicate | while IFS= read -r -d '' file; do
		if [[ -e $file ]]; then printf '%s\0' "$file"; fi
	done | tar --null -T - -cf - | tar -xf - -C "$1"
}
