// Command bench measures Drover with the workloads W1 to W7: one JSON line a workload on standard output, and in the end
// a table of the medians on standard error. With -against it measures another commit in turn with the working tree, and
// with -sitting other engines.
//
// It builds the server from the working tree, starts it on files in a temporary folder, starts a worker process (decider
// and activities), and is itself the load. So three processes share the machine and talk over loopback TCP. See README.md
// for what is measured and what is not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/droverhq/drover/internal/memlimit"
)

type options struct {
	workloads   string
	n, rounds   int
	concurrency string
	sleep       time.Duration
	wakes       uint
	profile     string
	partitions  int
	tag         string
	server      string
	against     string
	code, pairs bool
	sitting     bool
	engines     string
	peers       string
	cache       string
	slowN       int
	keep        bool
}

const defaultWorkloads = "W6,W1,W1b,W1n,W2,W3p,W3s,W4,W4a,W5"

func main() {
	// Three processes share the machine. One thread each for worker and load leaves the rest to the server: threads that
	// spin in search of work cost it more than they bring.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	memlimit.Ballast() // in every process, as in those of drover server and drover worker
	if len(os.Args) > 1 && os.Args[1] == workerRole {
		widen()
		if err := runWorker(os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "bench %s: %v\n", workerRole, err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.workloads, "w", defaultWorkloads, "workloads, comma separated; in a sitting, those of "+strings.Join(sittingOrder, ","))
	flag.IntVar(&o.n, "n", 0, "workflows in W1, W5, W6 and WB, signals in W4 (default 2,000; 5,000 in W5, 10,000 in W5b, 20,000 in WB)")
	flag.StringVar(&o.concurrency, "conc", "64,256", "outstanding workflows in W1 and W1b")
	flag.DurationVar(&o.sleep, "sleep", 30*time.Second, "timer of W5; all must be asleep before the first one wakes")
	flag.UintVar(&o.wakes, "wakes", 0, "sleepers due in a second in W5 (default as many as were started in one)")
	flag.IntVar(&o.rounds, "rounds", 1, "how often each workload is run")
	flag.StringVar(&o.profile, "profile", "dev", "durability profile of the server: dev or single")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the namespace")
	flag.StringVar(&o.tag, "tag", "", "free text for every line")
	flag.StringVar(&o.server, "server", "", "a drover binary to measure instead of the working tree's")
	flag.StringVar(&o.against, "against", "", "a git revision to run the same workloads on, in turn with the working tree")
	flag.BoolVar(&o.code, "code", false, "W1, W1b, W2 and W3 have workflow code in place of the raw decider")
	flag.BoolVar(&o.pairs, "pairs", false,
		"run the workloads with the raw decider and with workflow code, in turn (W1, W2, W3p, W3s)")
	flag.BoolVar(&o.sitting, "sitting", false, "measure Drover and its peers in turn, and print one table")
	flag.StringVar(&o.engines, "engines", strings.Join(engineNames(), ","), "what a sitting measures")
	flag.StringVar(&o.peers, "peers", "../../shared/peers", "folder with the harnesses of the peers")
	flag.StringVar(&o.cache, "cache", "", "folder where the peers are built and kept (default drover-bench in the user's cache folder)")
	flag.IntVar(&o.slowN, "slow-n", 500, "workflows in W1 and W7 of Temporal, which takes some 30 ms for each (-n, if that is smaller)")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with store and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.server != "" {
		o.server, _ = filepath.Abs(o.server)
	}
	do := run
	switch {
	case o.sitting:
		do = sit
	case o.against != "":
		do = compare
	case o.pairs:
		do = pairs
	}
	if !o.sitting && o.against == "" && !o.pairs { // those measure by other processes
		widen()
	}
	if err := do(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	names, err := chosen(o.workloads)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	if !o.keep {
		defer os.RemoveAll(dir)
	}
	b := &bench{o: o, dir: dir}
	if b.binary, err = buildServer(ctx, "..", dir, o.server); err != nil {
		return err
	}
	defer b.stop()
	var lines []*line
	for range o.rounds {
		for _, name := range names {
			w := workloads[name]
			if w.alone || b.client == nil {
				if err := b.open(ctx, w); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			l, err := b.measure(ctx, name, w)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", name, err), b.logs())
			}
			if err := l.print(); err != nil {
				return err
			}
			lines = append(lines, l)
			if w.alone {
				b.stop()
			}
		}
	}
	return table(os.Stderr, lines)
}

// open starts what a workload needs. What several workloads share is warmed up.
func (b *bench) open(ctx context.Context, w workload) error {
	b.runs = ""
	if w.bare {
		b.stop()
		return nil
	}
	if err := b.renew(ctx); err != nil || w.alone {
		return err
	}
	return warmUp(ctx, func(ctx context.Context, _ int) error { return b.workflow(ctx, job{Kind: "seq", N: 3}) })
}

// chosen are the workloads that a list of names and groups of names means.
func chosen(list string) (names []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		if all := groups[name]; all != nil {
			names = append(names, all...)
			continue
		}
		if _, ok := workloads[name]; !ok {
			return nil, fmt.Errorf("workload %q is not known: want some of %s", name, strings.Join(slices.Sorted(maps.Keys(workloads)), ", ")+", W4, W4a")
		}
		names = append(names, name)
	}
	return names, nil
}
