#!/usr/bin/env bash
# Breaks the product in twenty ways, one at a time, and fails if its tests do not notice. See the package comment of
# mutants/main.go, and mutants.txt for the list.
#
#	mutants.sh           all of them
#	mutants.sh P-7       those whose name begins so
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here"
export GO=${GO:-go}
exec "$GO" run ./mutants -root "$here/../.." -list "$here/mutants.txt" "$@"
