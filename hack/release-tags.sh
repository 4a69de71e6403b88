#!/usr/bin/env bash
# Publishes a release on GitHub for each unit of the plan in FOLDER, with the files that hack/release-build.sh has built. GitHub
# creates the tag when it publishes the release, so there is no tag without its release. It can run again after it was stopped.
# Usage: release-tags.sh FOLDER
#
# It needs gh and jq, and GITHUB_REPOSITORY and GITHUB_SHA as in a workflow.
set -euo pipefail

folder=$1
jq -r '.[] | "\(.unit) \(.tag) \(.to)"' "$folder/plan.json" | while read -r unit tag version; do
	is_draft=$(gh release view "$tag" --json isDraft --jq .isDraft </dev/null || echo none)
	if [[ $is_draft == true ]]; then gh release delete "$tag" --yes </dev/null; fi # An earlier run was stopped while it uploaded files.
	if [[ $is_draft != false ]]; then
		if is=$(gh api "repos/$GITHUB_REPOSITORY/git/ref/tags/$tag" --jq .object.sha </dev/null) && [[ $is != "$GITHUB_SHA" ]]; then
			echo "the tag $tag is at $is, not at $GITHUB_SHA: delete it, if nothing uses it" >&2
			exit 1
		fi
		case $unit in
		common) files=() ;; # The tag releases a Go module.
		direct-secrets) files=("$folder/charts/$unit-${version#v}.tgz" "$folder/charts/crds-${version#v}.tgz" "$folder"/dsctl-archives/*) ;;
		*) files=("$folder/charts/$unit-${version#v}.tgz" "$folder/images/$unit"-*.cdx.json) ;;
		esac
		jq -r --arg unit "$unit" '.[] | select(.unit == $unit).changes[] | "- \(.)"' "$folder/plan.json" >notes.md
		gh release create "$tag" --target "$GITHUB_SHA" --title "$unit $version" --notes-file notes.md "${files[@]}" </dev/null
	fi
	# A tag that a workflow creates starts no other workflow: https://docs.github.com/actions/concepts/security/github_token.
	if [[ $unit == direct-secrets ]]; then gh workflow run docs.yaml --ref "$tag" </dev/null; fi
done
