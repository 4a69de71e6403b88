#!/usr/bin/env bash
# Creates the module provider-NAME with the store Kinds KIND and ClusterKIND. The module compiles, and passes the
# conformance suite with an in-memory store. In this tree it also gets a page, owners, a chart and its place in every list.
# Usage: new-provider.sh NAME [KIND] [FOLDER], where the default of FOLDER is the root of this tree. Needs
# bin/tools/controller-gen.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:-} kind=${2:-}
[[ $name =~ ^[a-z][a-z0-9]{0,30}$ ]] || { echo "NAME is '$name'; it must be of lower-case letters and digits, for example acme" >&2; exit 1; }
kind=${kind:-${name^}Store}
[[ $kind =~ ^[A-Z][A-Za-z0-9]{0,40}$ ]] || { echo "KIND is '$kind'; it must begin with a capital letter, for example AcmeVault" >&2; exit 1; }
out=${3:-.}/provider-$name
[[ ! -e $out ]] || { echo "$out exists" >&2; exit 1; }

# lay_out writes a template to a file.
lay_out() {
	mkdir -p "$(dirname "$2")"
	sed -e "s/NAME/$name/g; s/KIND/$kind/g; s/LOWER/${kind,,}/g" "$1" >"$2"
}
(cd hack/newprovider && find . -name '*.tmpl') | while IFS= read -r file; do
	lay_out "hack/newprovider/$file" "$out/${file%.tmpl}"
done
tools=$PWD/bin/tools
go -C "$out" mod edit -replace="github.com/direct-secrets/direct-secrets/common=$(realpath --relative-to="$out" common)"
go -C "$out" mod tidy
(cd "$out/apis" && "$tools/controller-gen" paths=./v1alpha1 object crd:allowDangerousTypes=false output:crd:dir=../manifests/crds)
go run ./hack/permissions "$tools/controller-gen" "$out"
gofmt -w "$out"
if [[ -z ${3:-} ]]; then
	[[ -e docs/providers/$name.md ]] || lay_out hack/newprovider.md.tmpl "docs/providers/$name.md"
	owners=$(awk -v module="provider-$name" '
		!code && /^\/generator-/ { printf "%-21s @direct-secrets/%s\n", "/" module "/", module; code = 1 }
		!chart && /^\/charts\/generator-/ { printf "%-28s @direct-secrets/%s\n", "/charts/" module "/", module; chart = 1 }
		{ print }' .github/CODEOWNERS)
	echo "$owners" >.github/CODEOWNERS
	make --no-print-directory generate
fi
echo "$out is laid out. Next: put the service's SDK into client/client.go, and read docs/project/writing-a-provider.md."
