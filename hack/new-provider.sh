#!/usr/bin/env bash
# Creates a module with the Kinds KIND and ClusterKIND. The module compiles and passes its tests. In this tree it also gets a
# page, owners, a chart and its place in every list.
#
# - provider: the module provider-NAME with a store. It passes the conformance suite with a test server of an invented service.
# - generator: the module generator-NAME with a generator.
#
# Usage: new-provider.sh provider|generator NAME [KIND] [FOLDER] [PATH] [GROUP], where the default of FOLDER is the root of this tree,
# and that of PATH, the path of the Go module, is one of this repository. GROUP is the API group of the Kinds. By default it is below
# the domain of PATH. Needs bin/tools/controller-gen, and for a generator KUBEBUILDER_ASSETS if its tests run.
set -euo pipefail
cd "$(dirname "$0")/.."

type=${1:-} name=${2:-} kind=${3:-}
case $type in
provider) suffix=Store example="AcmeVault" ;;
generator) suffix='' example="AcmeToken" ;;
*) echo "the type of the module is '$type'; it must be provider or generator" >&2; exit 1 ;;
esac
[[ $name =~ ^[a-z][a-z0-9]{0,30}$ ]] || { echo "NAME is '$name'; it must be of lower-case letters and digits, for example acme" >&2; exit 1; }
kind=${kind:-${name^}$suffix}
[[ $kind =~ ^[A-Z][A-Za-z0-9]{0,40}$ ]] || { echo "KIND is '$kind'; it must begin with a capital letter, for example $example" >&2; exit 1; }
module=$type-$name
repository=github.com/direct-secrets/direct-secrets
out=${4:-.}/$module path=${5:-$repository/$module}
[[ $path =~ ^[-A-Za-z0-9._~/]+$ ]] || { echo "PATH is '$path'; it must be the path of a Go module, for example example.com/acme/$module" >&2; exit 1; }
domain=direct-secrets.io
if [[ $path != "$repository"/* ]]; then domain=${path%%/*}; fi
case $domain in
github.com | gitlab.com | bitbucket.org | codeberg.org | git.sr.ht) own= ;; # These domains are of the host, not of the module.
*.*) own=$name.$domain ;;
*) own= ;;
esac
group=${6:-$own}
[[ -n $group ]] || { echo "PATH is '$path', which names no domain of your own; set GROUP to an API group in one, for example GROUP=$name.example.com" >&2; exit 1; }
[[ $group =~ ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$ ]] || { echo "GROUP is '$group'; it must be a domain in lower-case letters, for example $name.example.com" >&2; exit 1; }
if [[ $path != "$repository"/* && .$group == *.direct-secrets.io ]]; then
	echo "GROUP is '$group'; the Kinds of a module of another repository are in a group of its own domain, for example $name.example.com" >&2
	exit 1
fi
# A reference without apiVersion means a group below direct-secrets.io.
reference=
if [[ .$group != *.direct-secrets.io ]]; then reference="apiVersion: $group\/v1alpha1, "; fi
[[ ! -e $out ]] || { echo "$out exists" >&2; exit 1; }

# lay_out writes a template to a file.
lay_out() {
	mkdir -p "$(dirname "$2")"
	sed -E -e "s=$repository/(MODULE|$type-NAME)=$path=g; s/MODULE/$module/g; s/Ref: \{kind: KIND/Ref: {${reference}kind: KIND/; s/GROUP/$group/g; s/NAME/$name/g; s/KIND/$kind/g; s/LOWER/${kind,,}/g" "$1" >"$2"
}
# Modules of both types share these templates.
for file in go.mod apis/v1alpha1/doc.go manifests/manifests.go; do
	lay_out "hack/newprovider/$file.tmpl" "$out/$file"
done
(cd "hack/new$type" && find . -name '*.tmpl') | while IFS= read -r file; do
	lay_out "hack/new$type/$file" "$out/${file%.tmpl}"
done
go -C "$out" mod edit -replace="$repository/common=$(realpath --relative-to="$out" common)"
go run ./hack/kinds "$out/apis/v1alpha1"
go -C "$out" mod tidy
make --no-print-directory generate-module FOLDER="$out"
gofmt -w "$out"
if [[ -z ${4:-} ]]; then
	if [[ $type == provider ]]; then page=docs/providers/$name.md; else page=docs/generators/${kind,,}.md; fi
	[[ -e $page ]] || lay_out "hack/new$type.md.tmpl" "$page"
	owners=$(awk -v module="$module" '
		!code && /^\/generator-/ { printf "%-21s @direct-secrets/%s\n", "/" module "/", module; code = 1 }
		!chart && /^\/charts\/generator-/ { printf "%-28s @direct-secrets/%s\n", "/charts/" module "/", module; chart = 1 }
		{ print }' .github/CODEOWNERS)
	echo "$owners" >.github/CODEOWNERS
	make --no-print-directory generate
fi
echo "$out is laid out. Next: write its code, and read docs/project/writing-a-provider.md."
