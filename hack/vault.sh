#!/usr/bin/env bash
# Builds or finds the Vault server that tests run against, and prints its path as the last line of
# stdout. Everything else goes to stderr.
#
# VAULT_TEST_SERVER, where set, names such a server.
# With --version it prints only what the cache folder is named after.
set -euo pipefail

source=$(cd "$(dirname "$0")/../e2e/servers/vault" && pwd)

# The version of Vault, and a digest of what else makes the binary: it is rebuilt when our part of it
# changes.
vault=$(awk '$1 == "github.com/hashicorp/vault" { print $2; exit }' "$source/go.mod")
digest=$(cd "$source" && cat go.mod go.sum ./*.go | sha256sum)
version=$vault-${digest:0:12}
if [[ ${1:-} == --version ]]; then
	echo "$version"
	exit 0
fi

if [[ -n ${VAULT_TEST_SERVER:-} ]]; then
	if [[ ! -x $VAULT_TEST_SERVER ]]; then
		echo "VAULT_TEST_SERVER is $VAULT_TEST_SERVER, which is no program." >&2
		echo "Correct it, or unset it to have the server built." >&2
		exit 1
	fi
	echo "$VAULT_TEST_SERVER"
	exit 0
fi

folder=${XDG_CACHE_HOME:-$HOME/.cache}/direct-secrets/vault/$version

if [[ -x $folder/vault ]]; then
	echo "$folder/vault"
	exit 0
fi

mkdir -p "$folder"
# A second caller waits here instead of building the same again. Where there is no
# flock, both build; the rename below keeps that safe, too.
if command -v flock >/dev/null; then
	exec 9>"$folder/.lock"
	flock -n 9 || { echo "Waiting for another build of Vault." >&2 && flock 9; }
fi
build=$(mktemp -d "$folder/.build.XXXXXX")
trap 'rm -rf "$build"' EXIT

# The server runs on this machine, whatever the caller's environment is set to build for.
export CGO_ENABLED=0 GOOS='' GOARCH='' GOFLAGS='-mod=readonly -buildvcs=false -trimpath' GOWORK=off

# progress turns the package names of `go build -v` into a line now and then.
progress() {
	awk '
		/^go: downloading/ { if (++got % 50 == 0) say(got " modules downloaded"); next }
		/^[A-Za-z0-9.\/_-]+$/ { if (++built % 100 == 0) say(built " packages compiled"); next }
		{ print; fflush() }
		function say(what) { print "  vault: " what; fflush() }' >&2
}

if [[ ! -x $folder/vault ]]; then
	echo "Building Vault $vault into $folder." >&2
	echo "This takes some minutes and happens once." >&2
	go -C "$source" build -v -ldflags '-s -w' -o "$build/vault" . 2>&1 | progress
	mv -f "$build/vault" "$folder/vault"
fi
echo "$folder/vault"
