# The scripts that work on a copy of the tree source it.

# copy_tree puts what is tracked or would be, as it is now, into the folder $1. It runs in the tree's root.
copy_tree() {
	mkdir -p "$1"
	git ls-files -coz --exclude-standard --deduplicate | while IFS= read -r -d '' file; do
		if [[ -e $file ]]; then printf '%s\0' "$file"; fi
	done | tar --null -T - -cf - | tar -xf - -C "$1"
}
