#!/usr/bin/env bash
# Publishes what hack/release-build.sh has built in FOLDER: images and charts, each with the version of its module. It signs
# them, and attaches the provenance and the bill of materials to each image. It also signs the checksums of the archives of
# dsctl. The signatures are those of the workflow that runs this script, without a key.
# Usage: publish.sh FOLDER
#
# It needs oras, helm, cosign and jq, and a login to the registry in docker's configuration.
set -euo pipefail

folder=$1
shopt -s nullglob
registry=${REGISTRY:-ghcr.io/direct-secrets}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The provenance of the images, in the format of https://slsa.dev/spec/v1.0/provenance.
jq -n '{
	buildDefinition: {
		buildType: "https://actions.github.io/buildtypes/workflow/v1",
		externalParameters: {workflow: {
			ref: env.GITHUB_REF,
			repository: "\(env.GITHUB_SERVER_URL)/\(env.GITHUB_REPOSITORY)",
			path: ".github/workflows/release.yaml"
		}},
		resolvedDependencies: [{
			uri: "git+\(env.GITHUB_SERVER_URL)/\(env.GITHUB_REPOSITORY)@\(env.GITHUB_REF)",
			digest: {gitCommit: env.GITHUB_SHA}
		}]
	},
	runDetails: {
		builder: {id: "\(env.GITHUB_SERVER_URL)/\(env.GITHUB_WORKFLOW_REF)"},
		metadata: {invocationId: "\(env.GITHUB_SERVER_URL)/\(env.GITHUB_REPOSITORY)/actions/runs/\(env.GITHUB_RUN_ID)/attempts/\(env.GITHUB_RUN_ATTEMPT)"}
	}
}' >"$work/provenance.json"

for archive in "$folder"/images/*.tar; do
	file=$(basename "$archive" .tar)
	name=${file%-fips}
	version=$(jq -r --arg unit "$name" '.[] | select(.unit == $unit).to' "$folder/plan.json")
	version=${version#v}${file#"$name"} # The tag of a FIPS image has the same suffix as its file.
	image=$registry/$name
	# The digest is computed from the built archive, not taken from the registry.
	oras manifest fetch --oci-layout "$archive:$version" >"$work/index.json"
	digest=sha256:$(sha256sum <"$work/index.json" | cut -d ' ' -f 1)
	oras cp --no-tty --from-oci-layout "$archive:$version" "$image:$version"
	cosign sign --yes --recursive "$image@$digest"
	cosign attest --yes --type slsaprovenance1 --predicate "$work/provenance.json" "$image@$digest"
	jq -r '.manifests[] | "\(.platform.architecture) \(.digest)"' "$work/index.json" | while read -r arch part; do
		cosign attest --yes --type cyclonedx --predicate "$folder/images/$file-$arch.cdx.json" "$image@$part" </dev/null
	done
	echo "$image:$version $digest"
done

# A signature of the checksums verifies all archives of dsctl.
if [[ -e $folder/dsctl-archives/SHA256SUMS ]]; then
	cosign sign-blob --yes --bundle "$folder/dsctl-archives/SHA256SUMS.sigstore.json" "$folder/dsctl-archives/SHA256SUMS"
fi

for chart in "$folder"/charts/*.tgz; do
	helm push "$chart" "oci://$registry/charts" --registry-config "${DOCKER_CONFIG:-$HOME/.docker}/config.json" 2>&1 | tee "$work/push"
	name=$(basename "$chart" .tgz)
	name=${name%-[0-9]*.[0-9]*.[0-9]*}
	digest=$(sed -n 's/^Digest: *//p' "$work/push")
	cosign sign --yes "$registry/charts/$name@${digest:?helm has not said which digest $chart has}"
done
