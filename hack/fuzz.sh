#!/usr/bin/env bash
# Runs every fuzz target below the given folders for FUZZTIME each (default 30s), one per core, and fails if a target finds
# an input. Coverage is measured only in the code of this project: `go test -fuzz` would compile every dependency again, to
# measure it there, too.
set -euo pipefail

# fuzz runs the targets of one package and prints their results.
fuzz() {
	local package=$1 log target failed=0
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	log=$work/log
	cd "$package"
	go test -c -gcflags='github.com/direct-secrets/direct-secrets/...=-d=libfuzzer' -o "$work/test" .
	for target in $(grep -hoE '^func Fuzz[A-Za-z]+' -- *_test.go | cut -d ' ' -f 2); do
		if "$work/test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "${FUZZTIME:-30s}" -test.fuzzminimizetime 50x \
			-test.parallel 1 -test.fuzzcachedir "$(go env GOCACHE)/fuzz/$(go list)" >"$log" 2>&1; then
			echo "== $package $target: $(grep '^fuzz: elapsed' "$log" | tail -n 1)"
		# The fuzzer sometimes reports the end of its own time as a failure. A real failure has written
		# its input to a file.
		elif grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
			echo "== $package $target: ended with its time"
		else
			echo "== $package $target"
			cat "$log"
			failed=1
		fi
	done
	return $failed
}
export -f fuzz

grep -rlE --include='*_test.go' '^func Fuzz[A-Za-z]+\(' "$@" | xargs -n 1 dirname | sort -u |
	xargs -P "$(nproc)" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz
