#!/usr/bin/env bash
# Checks the rules of the tree. The arguments are the folders of its modules. It reports all problems before it fails.
# Run `make build` before.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib/tree.sh

modules=("$@")
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAIL: $*" >&2
	failed=1
}

echo "== generated files"
# There are two copies of the tree. The files of one are generated again.
mkdir -p bin/tools
copy_tree "$work/is"
cp -R "$work/is" "$work/should"
make --no-print-directory -C "$work/should" generate TOOLS="$PWD/bin/tools"
diff -r -x bin "$work/is" "$work/should" || fail "generated files are stale: run \`make generate\`"

echo "== go.mod files"
for module in "${modules[@]}"; do
	go -C "$module" mod tidy -diff || fail "$module/go.mod is not tidy: run \`go mod tidy\` there"
done
for module in common provider-* generator-*; do
	[[ -f $module/go.mod ]] || continue
	others=$(grep -oE 'direct-secrets/direct-secrets/(provider|generator)-[a-z0-9-]+' "$module/go.mod" | grep -v "/$module\$" | sort -u || true)
	[[ -z $others ]] || fail "$module must not depend on $others"
done
grep -qF "\"$(hack/controlplane.sh --version)\"" common/testing/controlplane/assets.go ||
	fail "controlplane.Version is not $(hack/controlplane.sh --version), which the servers' go.mod files pin"

echo "== structure"
go run ./hack/structure common provider-* generator-* || fail "common is not built as it should be, or a module keeps maps without a bound"

echo "== versions"
# The programs of `make demo` must use the same versions of shared modules. Otherwise these modules, and all that import
# them, are compiled once for each program. The modules that the go.mod of Kubernetes replaces have the version v0.0.0.
versions() { go -C "$1" list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}' "$2" | grep -v ' v0.0.0$' | sort -u; }
versions . ./cmd/dsctl | grep -v "direct-secrets/direct-secrets" >"$work/dsctl"
for other in provider-aws:. e2e/servers/kubernetes:k8s.io/kubernetes/cmd/kube-apiserver; do
	differ=$(join "$work/dsctl" <(versions "${other%%:*}" "${other#*:}") | awk '$2 != $3')
	[[ -z $differ ]] || fail "dsctl and ${other%%:*} build with different versions (dsctl has the first) of: $differ"
done

echo "== sizes"
# within checks that the size $2 of $1 is at most $3, in the unit $4.
within() {
	if (($2 > $3)); then fail "$1 has $2 $4; at most $3 are allowed"; fi
}
for crd in $(find . -path '*/manifests/crds/*.yaml'); do within "$crd" "$(wc -c <"$crd")" 60000 bytes; done
for main in provider-*/main.go generator-*/main.go; do
	if [[ -f $main ]]; then within "$main" "$(wc -l <"$main")" 40 lines; fi
done
# The linker omits unused methods, unless a program can call methods by name, as text/template does. Every binary is then ten
# megabytes larger. The largest one, provider-aws, has 47 megabytes: SQS's client took one more, and the time zones half of one. `go build -ldflags=-dumpdep` shows the callers with <ReflectMethod>.
for binary in bin/*; do
	if [[ -f $binary ]]; then within "$binary" "$(wc -c <"$binary")" 48000000 bytes; fi
done

echo "== workflows"
# Without shellcheck and pyflakes, so that the result does not depend on their installation.
bin/tools/actionlint -shellcheck= -pyflakes= || fail "actionlint finds faults in the workflows"
unpinned=$(grep -rnE '^[- ]*uses:' .github | grep -vE 'uses: (\./|[^@ ]+@[0-9a-f]{40} # v[0-9.]+$)' || true)
[[ -z $unpinned ]] || fail "an action must be pinned by its commit, with the version as a comment: $unpinned"
for k8s in $(grep -rhoE 'K8S=[0-9.]+' .github README.md docs | sort -u); do
	env "$k8s" hack/controlplane.sh --version >/dev/null || fail "$k8s, which workflows or guides name, is none that e2e/servers pins"
done
for module in "${modules[@]}"; do
	owned=/${module#./}/
	[[ $module == . ]] || grep -qE "^$owned +@" .github/CODEOWNERS || fail ".github/CODEOWNERS has no line for $owned"
done

echo "== lock files"
if grep -l '"resolved"' docs/package-lock.json hack/renovate/package-lock.json; then fail "a lock file names where packages come from: run npm with the .npmrc beside it"; fi

exit $failed
