// Command bench measures Drover with the workloads W1 to W3 and its idle figures, W6: one JSON line a workload.
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
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

type options struct {
	workloads   string
	n, rounds   int
	concurrency string
	profile     string
	partitions  int
	tag         string
	server      string
	keep        bool
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
	flag.StringVar(&o.workloads, "w", "W6,W1,W1b,W1n,W2,W3p,W3s", "workloads, comma separated")
	flag.IntVar(&o.n, "n", 2000, "workflows in W1, W1b and W1n")
	flag.StringVar(&o.concurrency, "conc", "64,256", "outstanding workflows in W1 and W1b")
	flag.IntVar(&o.rounds, "rounds", 1, "how often each workload is run")
	flag.StringVar(&o.profile, "profile", "dev", "durability profile of the server: dev or single")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of the namespace")
	flag.StringVar(&o.tag, "tag", "", "free text for every line")
	flag.StringVar(&o.server, "server", "", "a drover binary to measure instead of the working tree's")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with store and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "drover-bench-")
	if err != nil {
		return err
	}
	if !o.keep {
		defer os.RemoveAll(dir)
	}
	b := &bench{o: o, dir: dir}
	if err := b.build(ctx); err != nil {
		return err
	}
	defer b.stop()
	if err := b.startServer(ctx); err != nil {
		return err
	}
	if err := b.startWorker(ctx); err != nil {
		return err
	}
	for range o.rounds {
		for name := range strings.SplitSeq(o.workloads, ",") {
			w := workloads[name]
			if w == nil {
				return fmt.Errorf("workload %q is not known; want some of W1, W1b, W1n, W2, W3p, W3s, W6", name)
			}
			if err := b.measure(ctx, name, w); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", name, err), b.logs())
			}
		}
	}
	return nil
}

// line is what a workload prints. Times are in milliseconds, sizes in bytes, CPU in seconds.
type line struct {
	Workload  string             `json:"workload"`
	Tag       string             `json:"tag,omitempty"`
	Profile   string             `json:"profile"`
	Time      time.Time          `json:"time"`
	Workflows int                `json:"workflows,omitempty"`
	Seconds   float64            `json:"seconds"`
	PerSecond float64            `json:"workflows_per_second,omitempty"`
	P50       float64            `json:"p50_ms,omitempty"`
	P99       float64            `json:"p99_ms,omitempty"`
	WallMS    float64            `json:"wall_ms,omitempty"`
	Messages  float64            `json:"messages_per_workflow,omitempty"`
	Bytes     float64            `json:"stored_bytes_per_workflow,omitempty"`
	Disk      float64            `json:"disk_bytes_per_workflow,omitempty"`
	CPUMillis float64            `json:"cpu_ms_per_workflow,omitempty"`
	CPU       map[string]float64 `json:"cpu_s,omitempty"`
	RSS       map[string]int64   `json:"rss_bytes,omitempty"`
	ReadyMS   float64            `json:"ready_ms,omitempty"`
}

func (l *line) print() error { return json.NewEncoder(os.Stdout).Encode(l) }
