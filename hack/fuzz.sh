#!/usr/bin/env bash
# Runs every fuzz target below the folders given for FUZZTIME each (default 30s), and fails on the first
# input that one of them finds.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT

while IFS=: read -r file line; do
	target=${line#func }
	target=${target%%(*}
	echo "== $(dirname "$file") $target"
	if (cd "$(dirname "$file")" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 50x .) >"$log" 2>&1; then
		tail -n 2 "$log"
		continue
	fi
	# At times the fuzzer takes the end of its own time for a failure. One that found something has
	# written its input down.
	if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
		echo "ended with its time"
		continue
	fi
	cat "$log"
	exit 1
done < <(grep -rE --include='*_test.go' '^func Fuzz[A-Za-z]+\(' "$@")
