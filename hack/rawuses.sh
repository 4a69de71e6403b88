#!/usr/bin/env bash
# Checks that the linter refuses each raw use in provider-aws/testdata/rawuses, and nothing else there. The argument is golangci-lint.
set -euo pipefail
cd "$(dirname "$0")/.."
attempts=provider-aws/testdata/rawuses
want=$(sed -nE '=; s|.*// refused: (\w+)$|\1|p' "$attempts/rawuses.go" | sed -nE '/^[0-9]+$/h; /^[a-z]+$/{x; G; s/\n/ /; p}')
is=$("$1" run --config .golangci.yml --enable-only forbidigo --issues-exit-code 0 --show-stats=false --output.text.print-issued-lines=false \
	--output.text.colors=false "./$attempts" | sed -nE 's/.*rawuses\.go:([0-9]+):.* because "(\w+):.*/\1 \2/p' | sort -nu)
diff <(echo "$want") <(echo "$is") || { echo "FAIL: the linter must refuse the attempts with < and nothing else" >&2; exit 1; }
