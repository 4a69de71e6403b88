#!/usr/bin/env bash
# Builds or finds the Vault server for tests, and prints its path as the last line of stdout.
# Everything else goes to stderr.
#
# VAULT_TEST_SERVER, if set, is the path of such a server, or the address of one that runs on loopback, with its root token in
# VAULT_TEST_TOKEN. Tests delete everything in that one.
# With --version it prints only the version in the name of the cache folder.
set -euo pipefail
source "$(dirname "$0")/lib/servers.sh"

# The version of Vault, and a digest of our own sources of the binary, so that a change of them
# rebuilds it.
vault=$(pinned vault github.com/hashicorp/vault)
digest=$(cd "$servers/vault" && cat go.mod go.sum ./*.go | sha256sum)
version=$vault-${digest:0:12}
if [[ ${1:-} == --version ]]; then
	echo "$version"
	exit 0
fi

if [[ -n ${VAULT_TEST_SERVER:-} ]]; then
	if [[ $VAULT_TEST_SERVER != http://* && ! -x $VAULT_TEST_SERVER ]]; then
		echo "VAULT_TEST_SERVER is $VAULT_TEST_SERVER, which is neither a program nor an address such as http://127.0.0.1:8200." >&2
		echo "Correct it, or unset it to have the server built." >&2
		exit 1
	fi
	echo "$VAULT_TEST_SERVER"
	exit 0
fi

build() {
	compile vault vault -ldflags '-s -w' -o "$1/vault" .
}
folder=$(cached vault "$version")
once "Vault $vault" "$folder" vault
echo "$folder/vault"
