#!/usr/bin/env bash
# Stands in for the programs with which the jobs of the workflow "release" use the network, and for the builds of images and of
# dsctl. The name by which it is called selects the program. STATE is the folder with the artifacts of the run and with what
# is published, and ORIGIN the repository. If CUT is a tag, creating its release stops half-way, as in a cancelled job.
set -euo pipefail

program=$(basename "$0")
echo "$program $*" >>"$STATE/calls"

# real runs the program for which this script stands in.
real() {
	PATH=${PATH#"$(dirname "$0"):"} exec "$program" "$@"
}

# create is `gh release create`. The real one creates a draft, uploads the files to it, and publishes it with its tag.
create() {
	local tag=$1 target='' files=() folder=$STATE/releases/$1 file
	shift
	while (($# > 0)); do
		case $1 in
		--target) target=$2 && shift ;;
		--title | --notes-file) shift ;;
		--verify-tag) git -C "$ORIGIN" rev-parse --quiet --verify "refs/tags/$tag" >/dev/null ;;
		*) files+=("$1") ;;
		esac
		shift
	done
	for file in "${files[@]}"; do
		[[ -e $file ]] || { echo "no matches found for $file" >&2 && exit 1; }
	done
	[[ ! -e $folder ]] || { echo "a release with the tag $tag already exists" >&2 && exit 1; }
	mkdir -p "$folder"
	echo true >"$folder/draft"
	if [[ ${CUT:-} == "$tag" ]]; then echo "the job is cancelled" >&2 && exit 1; fi
	cp notes.md "$folder/notes.md"
	for file in "${files[@]}"; do basename "$file"; done >"$folder/files"
	if ! git -C "$ORIGIN" rev-parse --quiet --verify "refs/tags/$tag" >/dev/null; then git -C "$ORIGIN" tag "$tag" "$target"; fi
	echo false >"$folder/draft"
}

case "$program ${1:-} ${2:-}" in
'gh run list') echo 1 ;;
'gh run download') # ID --name NAME --dir FOLDER
	[[ -d $STATE/artifacts/$5 ]] || { echo "no artifact $5" >&2 && exit 1; }
	mkdir -p "$7" && cp -R "$STATE/artifacts/$5/." "$7"
	;;
'gh release view') cat "$STATE/releases/$3/draft" 2>/dev/null || { echo 'release not found' >&2 && exit 1; } ;;
'gh release delete') rm -r "$STATE/releases/$3" ;;
'gh release create') shift 2 && create "$@" ;;
'gh workflow run') ;;
'gh api repos/'*'/git/ref/tags/'*) git -C "$ORIGIN" rev-parse --quiet --verify "refs/tags/${2#*/git/ref/tags/}" || { echo '{"message": "Not Found"}' && exit 1; } ;;
'docker login '*) cat >/dev/null ;;
'go install '*) ;;
'make images'*)
	for argument; do if [[ $argument == IMAGES=* ]]; then unit=${argument#*=}; fi; done
	mkdir -p bin/images
	touch "bin/images/$unit"{,-fips}.tar "bin/images/$unit"{,-fips}-{amd64,arm64}.cdx.json
	;;
'make dsctl'*) mkdir -p bin/dsctl-archives && touch bin/dsctl-archives/{SHA256SUMS,dsctl-linux-amd64.tar.gz} ;;
'oras manifest fetch') echo '{"manifests": [{"digest": "sha256:a", "platform": {"architecture": "amd64"}}, {"digest": "sha256:b", "platform": {"architecture": "arm64"}}]}' ;;
'oras cp '*) echo "${!#}" >>"$STATE/published" ;;
'helm push '*) basename "$3" >>"$STATE/published" && echo 'Digest: sha256:c' ;;
'cosign sign-blob '*) echo '{}' >"$4" ;; # --yes --bundle FILE
'cosign '*) ;;
'go '* | 'make '*) real "$@" ;;
*) echo "no stand-in for $program $*" >&2 && exit 1 ;;
esac
