// Command bench measures Drover with the workloads W1 to W6: one JSON line a workload on standard output, and in the end
// a table of the medians on standard error. With -against it measures another commit in turn with the working tree.
//
// It builds the server from the working tree, starts it on files in a temporary folder, starts a worker process (decider
// and activities), and is itself the load. So three processes share the machine and talk over loopback TCP. See README.md
// for what is measured and what is not.
package main

import (
	"context"
	"encoding/json"
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
)

type options struct {
	workloads   string
	n, rounds   int
	concurrency string
	sleep       time.Duration
	profile     string
	partitions  int
	tag         string
	server      string
	against     string
	keep        bool
	grow        growth
}

func main() {
	// Three processes share the machine. One thread each for worker and load leaves the rest to the server: threads that
	// spin in search of work cost it more than they bring.
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if len(os.Args) > 1 && os.Args[1] == workerRole {
		if err := runWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench worker:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.workloads, "w", "W6,W1,W1b,W1n,W2,W3p,W3s,W4,W4a,W5", "workloads, comma separated")
	flag.IntVar(&o.n, "n", 0, "workflows in W1, W5 and W6, signals in W4 (default 2,000; 5,000 in W5, 10,000 in W5b)")
	flag.StringVar(&o.concurrency, "conc", "64,256", "outstanding workflows in W1 and W1b")
	flag.DurationVar(&o.sleep, "sleep", 30*time.Second, "timer of W5; all must be asleep before the first one wakes")
	flag.IntVar(&o.rounds, "rounds", 1, "how often each workload is run")
	flag.StringVar(&o.profile, "profile", "dev", "durability profile of the server: dev or single")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the namespace")
	flag.StringVar(&o.tag, "tag", "", "free text for every line")
	flag.StringVar(&o.server, "server", "", "a drover binary to measure instead of the working tree's")
	flag.StringVar(&o.against, "against", "", "a git revision to run the same workloads on, in turn with the working tree")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with store and logs")
	o.grow.flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.server != "" {
		o.server, _ = filepath.Abs(o.server)
	}
	do := run
	if o.against != "" {
		do = compare
	}
	if o.grow.wanted() {
		do = grow
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
				if err := b.renew(ctx); err != nil {
					return err
				}
			}
			l, err := b.measure(ctx, name, w)
			if err != nil {
				return errors.Join(fmt.Errorf("%s: %w", name, err), b.logs())
			}
			if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
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
