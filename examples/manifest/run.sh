#!/usr/bin/env bash
# The whole product on real work, from nothing: builds, starts a server of its own, writes the checksums of every file of
# this repository by a workflow with one activity for each file, checks them with sha256sum, and shows how to look at what
# happened. "make run" calls it.
#
# Needs Go, make, bash and the GNU tools. Uses a free port of the loopback and a temporary folder, which it removes;
# KEEP=1 keeps it. Exits with 0 only if everything succeeded, the checks and the stop of the server too.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
server=

finish() {
	local code=$?
	trap - EXIT
	if [[ -n $server ]]; then
		kill "$server" 2>/dev/null || true
		wait "$server" || true
	fi
	if ((code != 0)) && [[ -s $work/server.log ]]; then
		printf '\nthe server said:\n' >&2
		tail -n 40 "$work/server.log" >&2
	fi
	if [[ ${KEEP:-} == 1 ]]; then
		printf '\nkept: %s\n' "$work"
	else
		rm -rf "$work"
	fi
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	printf 'run.sh: %s\n' "$*" >&2
	exit 1
}

title() { printf '\n== %s\n' "$*"; }

# show prints a command and runs it.
show() {
	printf '$ %s\n' "$*"
	"$@"
}

# names writes the names of the files, each ended by a NUL byte: those that git tracks and that are there, or all.
names() {
	local name
	if [[ -n $(git ls-files 2>/dev/null | head -n 1) ]]; then
		git ls-files -z
	else
		find . \( -path ./.git -o -path ./bin \) -prune -o -type f -printf '%P\0'
	fi | while IFS= read -r -d '' name; do
		if [[ -f $name ]]; then printf '%s\0' "$name"; fi
	done
}

# shorten shows the beginning and the end of a file, and of each line.
shorten() {
	local lines line head=22 tail=10
	lines=$(wc -l <"$1")
	if ((lines <= head + tail + 1)); then
		cat "$1"
	else
		head -n "$head" "$1"
		printf '    … %d more lines …\n' "$((lines - head - tail))"
		tail -n "$tail" "$1"
	fi | while IFS= read -r line; do
		if ((${#line} > 118)); then line=${line:0:117}…; fi
		printf '%s\n' "$line"
	done
}

title 'build'
"${MAKE:-make}" --no-print-directory build
CGO_ENABLED=0 "${GO:-go}" build -trimpath -o bin/manifest ./examples/manifest

title 'start a server'
bin/drover server --store "$work/store" --port -1 --json >"$work/ready" 2>"$work/server.log" &
server=$!
for ((tries = 0; tries < 300; tries++)); do
	if [[ -s $work/ready ]] || ! kill -0 "$server" 2>/dev/null; then break; fi
	sleep 0.05
done
NATS_URL=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$work/ready")
[[ -n $NATS_URL ]] || fail 'the server is not ready after 15 s'
export NATS_URL
cat "$work/ready"
printf '$ export NATS_URL=%s\n' "$NATS_URL"

title 'run the workflow'
id=manifest-of-drover
names >"$work/names"
mkdir "$work/tmp"
TMPDIR=$work/tmp show bin/manifest -dir . -files-from "$work/names" -out "$work/SHA256SUMS" -id "$id"

title 'check with sha256sum'
lines=$(wc -l <"$work/SHA256SUMS")
count=$(tr -cd '\0' <"$work/names" | wc -c)
((lines == count)) || fail "the manifest has $lines lines for $count files"
show sha256sum -c --quiet "$work/SHA256SUMS"
printf '%d files, all as they were\n' "$lines"

title 'what happened'
show bin/drover history "$id" >"$work/history"
shorten "$work/history"
show bin/drover list
show bin/drover verify

title 'stop the server'
kill "$server"
wait "$server" || fail "the server ended with exit code $?"
server=

title 'look further'
if [[ ${KEEP:-} == 1 ]]; then
	store=$work/store
	printf 'The store is kept. Start its server again, and ask from another terminal:\n\n'
else
	store=FOLDER/store
	printf 'The store is removed now. "KEEP=1 make run" keeps it; then start its server again, and ask from another terminal:\n\n'
fi
cat <<EOF
  bin/drover server --store $store
  bin/drover describe $id
  bin/drover history $id --json | jq .
  bin/drover result $id
EOF
