#!/usr/bin/env bash
# Runs every fuzz target below the folders given for FUZZTIME each (default 30s), one on each core, and
# fails if one of them finds an input.
set -euo pipefail

# fuzz runs one target and prints how it ended.
fuzz() {
	file=$1 target=$2 log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if (cd "$(dirname "$file")" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 50x -parallel 1 .) >"$log" 2>&1; then
		echo "== $(dirname "$file") $target: $(grep '^fuzz: elapsed' "$log" | tail -n 1)"
		return
	fi
	# At times the fuzzer takes the end of its own time for a failure. One that found something has
	# written its input down.
	if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
		echo "== $(dirname "$file") $target: ended with its time"
		return
	fi
	echo "== $(dirname "$file") $target"
	cat "$log"
	return 1
}
export -f fuzz

grep -rE --include='*_test.go' '^func Fuzz[A-Za-z]+\(' "$@" |
	sed -E 's/^([^:]+):func (Fuzz[A-Za-z]+)\(.*/\1 \2/' |
	xargs -P "$(nproc)" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz
