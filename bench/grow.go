package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// growth are the options of what is measured along curves: cost as the world grows.
type growth struct {
	curves string
	most   int
	draw   string
	images string
}

func (g *growth) flags() {
	flag.StringVar(&g.curves, "grow", "", "curves to measure instead of workloads, comma separated: "+strings.Join(growNames(), ", ")+", or all")
	flag.IntVar(&g.most, "max", 0, "leave out the points of -grow above this many open workflows, events, lists, partitions or bytes")
	flag.StringVar(&g.draw, "draw", "", "draw the pictures anew from a file of the lines that -grow prints, and measure nothing")
	flag.StringVar(&g.images, "images", "../docs/images", "folder for the pictures of -grow")
}

func (g *growth) wanted() bool { return g.curves != "" || g.draw != "" }

// point is what one place on a curve prints. Times are in milliseconds, sizes in bytes.
type point struct {
	Curve string `json:"curve"`
	// At is how many open workflows, events in the history, task lists, partitions, or bytes in each payload there are.
	At         int       `json:"at"`
	Tag        string    `json:"tag,omitempty"`
	Profile    string    `json:"profile"`
	Partitions int       `json:"partitions"`
	Time       time.Time `json:"time"`

	// Workflows is how many a burst of W1 has, and Bursts how many of them a second each burst did. PerSecond is their
	// median, and CPUMillis the CPU of all processes of this server. NewPerSecond and NewCPU are those of as many bursts on
	// a server that is new and empty, in turn with these, and OfNew the median of the ratios of the pairs: the machine's speed
	// drifts, and it is in both. What others on the machine do disturbs the CPU less than the rate.
	Workflows    int       `json:"workflows,omitempty"`
	Bursts       []float64 `json:"bursts_per_second,omitempty"`
	PerSecond    float64   `json:"workflows_per_second,omitempty"`
	NewPerSecond float64   `json:"new_workflows_per_second,omitempty"`
	OfNew        float64   `json:"of_new,omitempty"`
	CPUMillis    float64   `json:"cpu_ms_per_workflow,omitempty"`
	NewCPU       float64   `json:"new_cpu_ms_per_workflow,omitempty"`
	// Moved is how many megabytes of activities' arguments and results went through in a second.
	Moved float64 `json:"payload_megabytes_per_second,omitempty"`

	// P50 and P99 are of one workflow, or on the curve of histories of one decision: from before a signal is sent until the
	// record with the decision is read from the history. NewP50 and NewP99 are of decisions of a run with a short history, in
	// turn with these.
	P50    float64 `json:"p50_ms,omitempty"`
	P99    float64 `json:"p99_ms,omitempty"`
	NewP50 float64 `json:"new_p50_ms,omitempty"`
	NewP99 float64 `json:"new_p99_ms,omitempty"`
	// Events is how long the history was when its first decision was measured.
	Events int64 `json:"events,omitempty"`

	// Starts is how many open workflows a second were started since the point before.
	Starts float64 `json:"starts_per_second,omitempty"`
	// IdleCPU is that of the server in percent of a core, once all are idle. Rested is its memory behind a longer rest, at the last point.
	IdleCPU float64 `json:"idle_cpu_percent,omitempty"`
	memory
	Rested *memory `json:"rested,omitempty"`
}

// places are the points of each curve, in the order of measuring.
var places = map[string][]int{
	"open":       {10_000, 30_000, 100_000, 300_000, 1_000_000},
	"waiting":    {10_000, 30_000, 100_000, 300_000, 1_000_000},
	"history":    {100, 1_000, 10_000, 100_000},
	"lists":      {1, 10, 100, 1_000},
	"partitions": {1, 2, 4, 8, 16, 32, 64},
	"payload":    {100, 1 << 10, 4 << 10, 16 << 10, 64 << 10},
}

// measurers measure a curve at its places, and tell each point once it is known.
var measurers = map[string]func(g *grower, ctx context.Context, at []int) error{
	"open":       func(g *grower, ctx context.Context, at []int) error { return g.open(ctx, "open", "sleep", at) },
	"waiting":    func(g *grower, ctx context.Context, at []int) error { return g.open(ctx, "waiting", "signals", at) },
	"history":    (*grower).histories,
	"lists":      (*grower).lists,
	"partitions": (*grower).partitions,
	"payload":    (*grower).payloads,
}

// growNames are the curves that "all" means, in the order of measuring.
func growNames() []string { return []string{"open", "history", "lists", "partitions", "payload"} }

// grower measures curves, with one bench for what grows and one that stays as it was.
type grower struct {
	o      options
	dir    string
	binary string
	points []*point
}

// grow measures the curves and draws them, or only draws.
func grow(ctx context.Context, o options) (err error) {
	if o.grow.draw != "" {
		points, err := readPoints(o.grow.draw)
		if err != nil {
			return err
		}
		return drawAll(points, o.grow.images)
	}
	names, err := chosenCurves(o.grow.curves)
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
	g := &grower{o: o, dir: dir}
	if g.binary, err = buildServer(ctx, "..", dir, o.server); err != nil {
		return err
	}
	for _, name := range names {
		at := slices.DeleteFunc(slices.Clone(places[name]), func(n int) bool { return o.grow.most > 0 && n > o.grow.most })
		if err := measurers[name](g, ctx, at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return errors.Join(tablePoints(os.Stderr, g.points), drawAll(g.points, o.grow.images))
}

func chosenCurves(list string) (names []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		switch {
		case name == "all":
			names = append(names, growNames()...)
		case measurers[name] == nil:
			return nil, fmt.Errorf("curve %q is not known: want some of %s, waiting, or all", name, strings.Join(growNames(), ", "))
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// tell prints a point.
func (g *grower) tell(p *point) error {
	g.points = append(g.points, p)
	return json.NewEncoder(os.Stdout).Encode(p)
}

func (g *grower) point(curve string, at, partitions int) *point {
	return &point{Curve: curve, At: at, Tag: g.o.tag, Profile: g.o.profile, Partitions: partitions, Time: time.Now().UTC()}
}

// bench is a sitting in a folder of its own, beside others.
func (g *grower) bench(name string, partitions int) (*bench, error) {
	o := g.o
	o.partitions = partitions
	b := &bench{o: o, dir: filepath.Join(g.dir, name), binary: g.binary, traced: true, procs: map[string]*exec.Cmd{}}
	return b, os.MkdirAll(b.dir, 0o755)
}

// fresh starts a server and a worker on an empty store of their own.
func (g *grower) fresh(ctx context.Context, name string, partitions int) (*bench, error) {
	b, err := g.bench(name, partitions)
	if err == nil {
		err = b.renew(ctx)
	}
	return b, err
}

// done stops what a curve has started, and tells what it said if that was not the end it should have had.
func (b *bench) done(err error) error {
	if err != nil {
		err = errors.Join(err, b.logs())
	}
	b.stop()
	return errors.Join(err, os.RemoveAll(b.store()))
}

// tries is how many bursts a point has: an even number, since of two that are measured in turn each comes first as often. Beside open
// workflows it is openTries: what a server does now and then for so many, its audit and a collection of garbage, is in some bursts and not in others.
const (
	tries     = 4
	openTries = 16
)

// bursts measures W1 where the world has grown, in turn with one where it has not. The first pair warms up and is not
// counted.
func (p *point) bursts(ctx context.Context, grown, fixed *bench, tries, n int, of func(i int) job) error {
	var ratios, beside []float64
	var cpu, fixedCPU float64
	var all []time.Duration
	p.Workflows = n
	for try := range tries + 1 {
		size := n
		if try == 0 {
			size = max(n/4, 1)
		}
		got := map[*bench]*burst{}
		pair := []*bench{grown, fixed}
		if try%2 == 1 {
			slices.Reverse(pair)
		}
		for _, b := range pair {
			jobs := usual
			if b == grown {
				jobs = of
			}
			var err error
			if got[b], err = b.burst(ctx, size, jobs); err != nil {
				return errors.Join(err, b.logs())
			}
		}
		if try == 0 {
			continue
		}
		g, f := got[grown], got[fixed]
		p.Bursts, all, cpu = append(p.Bursts, g.rate), append(all, g.took...), cpu+g.cpu
		beside, ratios, fixedCPU = append(beside, f.rate), append(ratios, g.rate/f.rate), fixedCPU+f.cpu
	}
	p.PerSecond, p.CPUMillis = median(p.Bursts), 1000*cpu/float64(tries*n)
	p.P50, p.P99 = millis(quantile(all, 50)), millis(quantile(all, 99))
	p.NewPerSecond, p.NewCPU, p.OfNew = median(beside), 1000*fixedCPU/float64(tries*n), median(ratios)
	return nil
}

// burst is a short W1.
type burst struct {
	rate float64 // workflows a second
	cpu  float64 // seconds, of all processes
	took []time.Duration
}

// burst runs n workflows, 64 of them outstanding.
func (b *bench) burst(ctx context.Context, n int, of func(i int) job) (*burst, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	before, err := b.usages()
	if err != nil {
		return nil, err
	}
	began, got := time.Now(), &burst{}
	if got.took, err = atOnce(ctx, starters, n, func(ctx context.Context, i int) error { return b.workflow(ctx, of(i)) }); err != nil {
		return nil, err
	}
	got.rate = float64(n) / time.Since(began).Seconds()
	after, err := b.usages()
	for name, u := range after {
		got.cpu += u.cpu - before[name].cpu
	}
	return got, err
}

// usual is the workflow of W1.
func usual(int) job { return job{Kind: "seq", N: 3} }

func readPoints(file string) (points []*point, err error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		p := &point{}
		if err := json.Unmarshal(lines.Bytes(), p); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w; want what -grow prints", file, n, err)
		}
		points = append(points, p)
	}
	return points, lines.Err()
}

// tablePoints prints what was measured for people.
func tablePoints(out io.Writer, points []*point) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "curve\tat\twf/s\tof new\tCPU ms\tnew CPU\tp50 ms\tnew p50\tp99 ms\tMB/s\tstarts/s\tRSS\tbare\tbeyond\talive\trested\t")
	cell := func(v float64) string {
		if v == 0 {
			return ""
		}
		return short(v)
	}
	for _, p := range points {
		fmt.Fprintf(w, "%s\t%d", p.Curve, p.At)
		rested := cmp.Or(p.Rested, &memory{}).Beyond
		for _, v := range []float64{p.PerSecond, p.OfNew, p.CPUMillis, p.NewCPU, p.P50, p.NewP50, p.P99, p.Moved, p.Starts, float64(p.RSS), float64(p.BareRSS), p.Beyond, p.BeyondLive, rested} {
			fmt.Fprint(w, "\t", cell(v))
		}
		fmt.Fprintln(w, "\t")
	}
	return w.Flush()
}

// latest keeps of points at the same place the last one, in the order of the places: a file of lines may have several
// sittings.
func latest(points []*point, curve string) (of []*point) {
	byPlace := map[int]*point{}
	for _, p := range points {
		if p.Curve == curve {
			byPlace[p.At] = p
		}
	}
	for _, p := range byPlace {
		of = append(of, p)
	}
	slices.SortFunc(of, func(a, b *point) int { return cmp.Compare(a.At, b.At) })
	return of
}
