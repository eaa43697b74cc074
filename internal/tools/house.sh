#!/usr/bin/env bash
# Measures the repository and compares it with the limits of its design. See the package comment of house/main.go.
#
#	house.sh             all tables; the last one is bar, limit, now
#	house.sh -tags       the requirement tags that stand in tests, one a line
#	house.sh -root DIR   another checkout
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here"
exec "${GO:-go}" run ./house -root "$here/../.." -words "$here/house-words.txt" "$@"
