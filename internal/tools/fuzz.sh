#!/usr/bin/env bash
# Runs every fuzz target of the named packages (default ./...) for FUZZTIME (default 10s) each, one after the other,
# since each uses all cores. A target that fails does not stop the others; the exit code is 1 if any failed, and go
# keeps the input that broke it in testdata/fuzz of its package.
set -euo pipefail

GO=${GO:-go}
FUZZTIME=${FUZZTIME:-10s}
[ $# -gt 0 ] || set -- ./...

# go test -list prints the names of a package and then its "ok" line.
list=$("$GO" test -list '^Fuzz' "$@") || { printf '%s\n' "$list" >&2; exit 1; }
targets=$(awk '/^Fuzz[^ \t]*$/ { name[n++] = $0 } /^ok[ \t]/ { for (i = 0; i < n; i++) print $2, name[i]; n = 0 }' <<<"$list")
if [ -z "$targets" ]; then
	echo "no fuzz target in $*" >&2
	exit 1
fi

failed=()
while read -r package name; do
	echo "== $package $name"
	# Left to itself, go spends a minute on making each new input smaller, which is all the time that a target has here.
	"$GO" test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 10x "$package" </dev/null || failed+=("$package $name")
done <<<"$targets"

if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
