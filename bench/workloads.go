package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
)

// payload is the 100-byte argument of every workflow and activity.
var payload = strings.Repeat("0123456789", 10)

// oneAtATime is how many workflows W2 has.
const oneAtATime = 200

// workload is what can be measured.
type workload struct {
	// run does the work, and tells in the line how many workflows or signals it was and how long each took.
	run func(ctx context.Context, b *bench, l *line) error
	// finish measures what must not be counted among the work. Optional.
	finish func(ctx context.Context, b *bench, l *line) error
	// alone has a server and a store of its own.
	alone bool
	// bare starts by itself what it needs, and is measured by itself.
	bare bool
}

var workloads = map[string]workload{
	"W1":  {run: func(ctx context.Context, b *bench, l *line) error { return b.many(ctx, l, "seq", 0) }},
	"W1b": {run: func(ctx context.Context, b *bench, l *line) error { return b.many(ctx, l, "seq", 1) }},
	"W1j": {run: func(ctx context.Context, b *bench, l *line) error { return b.many(ctx, l, "json", 0) }},
	"W1n": {run: func(ctx context.Context, b *bench, l *line) error { return b.many(ctx, l, "once", 0) }},
	"W2": {run: func(ctx context.Context, b *bench, l *line) error {
		return b.one(ctx, l, job{Kind: "seq", N: 3}, oneAtATime)
	}},
	"W3p": {run: func(ctx context.Context, b *bench, l *line) error {
		return b.one(ctx, l, job{Kind: "fan", N: 500}, 5)
	}},
	"W3s": {run: func(ctx context.Context, b *bench, l *line) error {
		return b.one(ctx, l, job{Kind: "seq", N: 1000}, 3)
	}},
	"W3d": {run: func(ctx context.Context, b *bench, l *line) error {
		return b.one(ctx, l, job{Kind: "do", N: 1000}, 3)
	}},
	"W3q": {run: func(ctx context.Context, b *bench, l *line) error {
		return b.one(ctx, l, job{Kind: "quick", N: 1000}, 3)
	}},
	"W4-1":   signalled(1, (*bench).publish),
	"W4-32":  signalled(32, (*bench).publish),
	"W4a-1":  signalled(1, (*bench).call),
	"W4a-32": signalled(32, (*bench).call),
	"W5":     asleep(5000),
	"W5b":    asleep(10000),
	"W6":     {run: idle, finish: restart, alone: true},
	"W7w":    {run: killed("worker", (*bench).workerAgain), bare: true, alone: true},
	"W7s":    {run: killed("server", (*bench).serverAgain), bare: true, alone: true},
	"W7b":    {run: twoBrokers, bare: true, alone: true},
	"V":      {run: func(ctx context.Context, b *bench, l *line) error { return b.visible(ctx, l) }, finish: restartVisible, alone: true},
	"WB":     {run: backlog, bare: true, alone: true},
}

// groups are names for several workloads.
var groups = map[string][]string{"W4": {"W4-1", "W4-32"}, "W4a": {"W4a-1", "W4a-32"}, "W3": {"W3p", "W3s"}}

// idle looks at a new server at rest, and then at what W1 leaves.
func idle(ctx context.Context, b *bench, l *line) error {
	l.ReadyMS = millis(b.ready)
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	l.Binary = info.Size()
	rss, cpu, err := b.rest(ctx, 3*time.Second)
	if err != nil {
		return err
	}
	l.IdleRSS, l.IdleCPU = rss["server"], cpu["server"]
	return b.many(ctx, l, "seq", 0)
}

// restart counts how long the server takes until it is ready on the store that it has.
func restart(ctx context.Context, b *bench, l *line) error {
	b.stop()
	if err := b.startServer(ctx); err != nil {
		return err
	}
	l.RestartMS = millis(b.ready)
	return nil
}

// rest lets a while pass, and returns the memory at its end and the CPU in percent of a core, by process.
func (b *bench) rest(ctx context.Context, d time.Duration) (rss map[string]int64, cpu map[string]float64, err error) {
	before, err := b.usages()
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	if err := sleep(ctx, d); err != nil {
		return nil, nil, err
	}
	after, err := b.usages()
	if err != nil {
		return nil, nil, err
	}
	rss, cpu = map[string]int64{}, map[string]float64{}
	for name, u := range after {
		rss[name] = u.rss
		cpu[name] = 100 * (u.cpu - before[name].cpu) / time.Since(began).Seconds()
	}
	return rss, cpu, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// atOnce calls do for 0 to n-1, a number of them at the same time, and returns how long each took. It ends with the
// first error.
func atOnce(ctx context.Context, outstanding, n int, do func(ctx context.Context, i int) error) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		took = make([]time.Duration, n)
	)
	for range outstanding {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				began := time.Now()
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
				took[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	return took, context.Cause(ctx)
}

const (
	// warmUps workflows, warmWidth at a time, come before anything is measured: so the harnesses of the peers have it. A workload with a
	// server of its own has one.
	warmUps   = 200
	warmWidth = 32
)

// warmUp calls do for each of the workflows that warm a server and its clients up.
func warmUp(ctx context.Context, do func(ctx context.Context, i int) error) error {
	if _, err := atOnce(ctx, warmWidth, warmUps, do); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return nil
}

// outstanding is a figure of -conc.
func (b *bench) outstanding(width int) (int, error) {
	widths := strings.Split(b.o.concurrency, ",")
	n, err := strconv.Atoi(widths[min(width, len(widths)-1)])
	if err != nil {
		return 0, fmt.Errorf("-conc: %w", err)
	}
	if n < 1 {
		return 0, fmt.Errorf("-conc is %d: so many workflows outstanding do nothing; want 1 or more", n)
	}
	return n, nil
}

// many keeps a number of workflows of three activities outstanding.
func (b *bench) many(ctx context.Context, l *line, kind string, width int) error {
	outstanding, err := b.outstanding(width)
	if err != nil {
		return err
	}
	l.Workflows = cmp.Or(b.o.n, 2000)
	began := time.Now()
	l.took, err = atOnce(ctx, outstanding, l.Workflows, func(ctx context.Context, _ int) error { return b.workflow(ctx, job{Kind: kind, N: 3}) })
	l.PerSecond = float64(l.Workflows) / time.Since(began).Seconds()
	return err
}

// one runs workflows one at a time.
func (b *bench) one(ctx context.Context, l *line, j job, n int) (err error) {
	l.Workflows = n
	began := time.Now()
	l.took, err = atOnce(ctx, 1, n, func(ctx context.Context, _ int) error { return b.workflow(ctx, j) })
	l.PerSecond = float64(n) / time.Since(began).Seconds()
	l.WallMS = millis(quantile(l.took, 50))
	return err
}

func (b *bench) workflow(ctx context.Context, j job) error {
	j.Payload = payload
	run, err := b.client.Start(ctx, typeOf(j, b.o.code), j, nil)
	if err != nil {
		return err
	}
	return run.Result(ctx, nil)
}

// slowest is what a workflow may take of a workload's time: a third of the slowest rate that was ever measured.
const slowest = time.Second / 500

// measure runs a workload between two readings of everything that is counted.
func (b *bench) measure(ctx context.Context, name string, w workload) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute+4*b.o.sleep+time.Duration(b.o.n)*slowest)
	defer cancel()
	l := &line{Workload: name, Tag: b.o.tag, Profile: b.o.profile}
	if w.bare {
		l.Time = time.Now().UTC()
		return l, w.run(ctx, b, l)
	}
	before, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	l.Time = began.UTC()
	if err := w.run(ctx, b, l); err != nil {
		return nil, err
	}
	wall := time.Since(began)
	after, err := b.read(ctx)
	if err != nil {
		return nil, err
	}
	l.account(wall, before, after)
	if w.finish != nil {
		err = w.finish(ctx, b, l)
	}
	return l, err
}

// reading is what is counted at one instant.
type reading struct {
	processes map[string]usage
	messages  uint64 // ever stored, by all streams
	traffic   traffic
	bytes     int64 // in the history streams
	disk      int64
	busy      float64 // CPU seconds of the whole machine
}

func (b *bench) read(ctx context.Context) (*reading, error) {
	conn := natsconn.Of(b.client)
	r := &reading{disk: diskUsage(b.store()), busy: busy()}
	streams := conn.JetStream().ListStreams(ctx)
	for s := range streams.Info() {
		r.messages += s.State.LastSeq
		if strings.Contains(s.Config.Name, "-history-") {
			r.bytes += int64(s.State.Bytes)
		}
	}
	if err := streams.Err(); err != nil {
		return nil, err
	}
	var err error
	if r.traffic, err = readTraffic(ctx, conn); err != nil {
		return nil, err
	}
	r.processes, err = b.usages()
	return r, err
}

// usages reads what the kernel has counted for each process.
func (b *bench) usages() (map[string]usage, error) {
	all := map[string]usage{}
	for name, pid := range b.pids() {
		u, err := usageOf(pid)
		if err != nil {
			return nil, err
		}
		all[name] = u
	}
	return all, nil
}
