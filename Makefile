# make test is what CI runs. It needs Go, a C compiler for the race detector, node, npm and python3 for the workers in those
# languages, the Go module proxy and the npm registry. As root on Linux it also needs ip (iproute2) and /dev/fuse, for the tests that
# cut networks and power; other users skip these, and are told so.

SHELL       := bash
.SHELLFLAGS := -o pipefail -c

GO       ?= go
BIN      ?= bin/drover
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 10s
PKGS     ?= ./...
TIMEOUT  ?= 14m
# One package more than there are cores: those that wait for processes leave theirs to others.
PACKAGES ?= $(shell echo $$(($$(nproc) + 1)))
# Every package is tested without the race detector. With it, which makes bubbles many times as slow, one of eight bubbles
# (internal/sample) of the packages that start goroutines: not of these, which start none, or run on the loop of an owner,
# whose own tests have it, or run in processes that are built as they are shipped, or put together what has tests of its own.
PLAIN := cmd/drover(/[a-z]+)? contract docs drovertest e2e e2e/cluster e2e/damage e2e/guides e2e/power examples(/[a-z-]+)+ schemas schemas/codec schemas/jsonschema schemas/requirement \
	activity/kinds broker/(checker|execution|locks|openruns|states|stats|subject) \
	broker/partition/(ahead|cache|dispatch|exchange|handover|inspect|large|locking|probes|repeats|replays|writer) \
	ops/metrics ops/operations ops/permissions ops/query timers/calendar \
	decider/workflow(/internal/(match|turns))? decider/flow/(backoff|concurrency|condition|define|expr|graph|machine|model|run|shorthand|store|syntax|value) \
	internal/(bucketkey|compactmap|diskspace|duration|freeport|gosource|idset|logs|logx|picture|retention|rootcause|runid|safecall|sample) \
	internal/(shortid|slack|tally|terminal|typecheck|virtual|zones)
empty :=
PLAIN := /($(subst $(empty) $(empty),|,$(strip $(PLAIN))))$$
# Its processes are of the test binary: they have the race detector, too.
RACED := /e2e/chaos$$
# The race detector lets each process sleep for a second at its end; there are hundreds, as many tests start others.
GORACE   ?= atexit_sleep_ms=0
export GORACE
BENCH    ?=
MUTANTS  ?=
DURATION ?= 10m
SEED     ?= 0
TOPOLOGY ?=
REPORT   ?= $(CURDIR)/bin/chaos.jsonl

TOOL   := $(GO) tool -modfile=internal/tools/go.mod
CHECKS := all,-ST1020,-ST1021,-ST1022,-QF1*

.PHONY: all run test build lint vet vettool floors staticcheck format fmt fuzz bench million picture alerts chaos soak house mutants clean

all: build

# The whole product on a small example, from nothing.
run: build
	./examples/manifest/run.sh

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X github.com/droverhq/drover/cmd/drover/cli.version=$(VERSION)' -o $(BIN) ./cmd/drover

# Cheap checks come first. The order is kept under make -j: each step is a command of its own. go test need not vet: vet has.
test:
	@$(MAKE) --no-print-directory format
	@$(MAKE) --no-print-directory vet
	@$(MAKE) --no-print-directory floors
	$(GO) list $(PKGS) | { grep -vE '$(PLAIN)' || true; } | xargs -r env DROVER_TEST_SAMPLE=1 $(GO) test -vet=off -race -shuffle=on -p $(PACKAGES) -timeout $(TIMEOUT)
	$(GO) list $(PKGS) | { grep -vE '$(RACED)' || true; } | xargs -r $(GO) test -vet=off -shuffle=on -p $(PACKAGES) -timeout $(TIMEOUT)
	@$(MAKE) --no-print-directory vettool
	@$(MAKE) --no-print-directory staticcheck

lint:
	@$(MAKE) --no-print-directory format
	@$(MAKE) --no-print-directory vet
	@$(MAKE) --no-print-directory floors
	@$(MAKE) --no-print-directory staticcheck
	$(GO) fix -diff $(PKGS)

vet:
	$(GO) vet $(PKGS)

# A module of its own, which depends on golang.org/x/tools: finds what code of workflows must not do.
vettool:
	cd vet && $(GO) test ./...

floors:
	$(GO) test -run '^TestFloors' .

staticcheck:
	$(TOOL) staticcheck -checks '$(CHECKS)' $(PKGS)

format:
	@files="$$($(TOOL) gofumpt -l .)" || exit 1; \
	if [ -n "$$files" ]; then printf 'not formatted, run make fmt:\n%s\n' "$$files" >&2; exit 1; fi

fmt:
	$(TOOL) gofumpt -w .

# Every fuzz target, FUZZTIME each: make fuzz FUZZTIME=1m PKGS=./broker/subject
fuzz:
	GO='$(GO)' FUZZTIME=$(FUZZTIME) ./internal/tools/fuzz.sh $(PKGS)

# A module of its own, so that the peers that are measured never enter this one: make bench BENCH='-w W1'
bench: build
	cd bench && $(GO) run . $(BENCH)

# A million runs as records of a real engine, and questions about them: some minutes, and 1.3 GB of disk while it runs.
million: build
	cd bench && $(GO) run . -w V -n 1000000

# docs/internals/architecture.svg from its description; a test compares the two.
picture:
	$(GO) run ./internal/picture docs/internals/architecture.txt docs/internals/architecture.svg

# Alerts and dashboard by Prometheus' own parser and engine: a module of its own, which takes a minute to build.
alerts:
	cd internal/tools/alerts && $(GO) test -count=1 ./...

# Load, faults and the checker, for DURATION: make chaos SEED=7 TOPOLOGY=cluster
# The topologies take turns. It fails on a violation, keeps what it was, and says where. The report is also in REPORT.
chaos:
	@mkdir -p $(dir $(REPORT))
	$(GO) test ./e2e/chaos -run '^TestChaos$$' -count=1 -timeout 0 -v -args -chaos.duration=$(DURATION) -chaos.seed=$(SEED) \
		-chaos.topology='$(TOPOLOGY)' -chaos.report='$(REPORT)'

# The same for as long as asked: make soak DURATION=8h
soak: chaos

# Code, tests and papers by size, and the limits that they have.
house:
	@GO='$(GO)' ./internal/tools/house.sh

# Twenty ways to break the product, each of which a test must notice: make mutants MUTANTS='P-7 lock'
mutants:
	@GO='$(GO)' ./internal/tools/mutants.sh $(MUTANTS)

clean:
	rm -rf bin coverage coverage.out
