package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// payload is the 100-byte argument of every workflow and activity.
var payload = strings.Repeat("0123456789", 10)

// workload runs, and returns how many workflows it ran and how long each took from start to known result.
type workload func(ctx context.Context, b *bench) (took []time.Duration, err error)

var workloads = map[string]workload{
	"W1":  func(ctx context.Context, b *bench) ([]time.Duration, error) { return b.many(ctx, "seq", 0) },
	"W1b": func(ctx context.Context, b *bench) ([]time.Duration, error) { return b.many(ctx, "seq", 1) },
	"W1n": func(ctx context.Context, b *bench) ([]time.Duration, error) { return b.many(ctx, "once", 0) },
	"W2": func(ctx context.Context, b *bench) ([]time.Duration, error) {
		return b.one(ctx, job{Kind: "seq", N: 3}, 200)
	},
	"W3p": func(ctx context.Context, b *bench) ([]time.Duration, error) {
		return b.one(ctx, job{Kind: "fan", N: 500}, 5)
	},
	"W3s": func(ctx context.Context, b *bench) ([]time.Duration, error) {
		return b.one(ctx, job{Kind: "seq", N: 1000}, 3)
	},
	"W6": func(ctx context.Context, _ *bench) ([]time.Duration, error) { return nil, sleep(ctx, 3*time.Second) },
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// many keeps a number of workflows of three activities outstanding.
func (b *bench) many(ctx context.Context, kind string, width int) ([]time.Duration, error) {
	widths := strings.Split(b.o.concurrency, ",")
	outstanding, err := strconv.Atoi(widths[min(width, len(widths)-1)])
	if err != nil {
		return nil, fmt.Errorf("-conc: %w", err)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		took = make([]time.Duration, 0, b.o.n)
		errs error
		next = make(chan struct{})
	)
	for range outstanding {
		wg.Go(func() {
			for range next {
				d, err := b.workflow(ctx, job{Kind: kind, N: 3})
				mu.Lock()
				if took = append(took, d); err != nil {
					errs = err
				}
				mu.Unlock()
			}
		})
	}
	for range b.o.n {
		next <- struct{}{}
	}
	close(next)
	wg.Wait()
	return took, errs
}

// one runs workflows one at a time.
func (b *bench) one(ctx context.Context, j job, n int) ([]time.Duration, error) {
	took := make([]time.Duration, 0, n)
	for range n {
		d, err := b.workflow(ctx, j)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}

func (b *bench) workflow(ctx context.Context, j job) (time.Duration, error) {
	j.Payload = payload
	began := time.Now()
	run, err := b.client.Start(ctx, "bench", j, nil)
	if err != nil {
		return 0, err
	}
	err = run.Result(ctx, nil)
	return time.Since(began), err
}

// measure runs a workload between two readings of everything that is counted.
func (b *bench) measure(ctx context.Context, name string, w workload) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	before, err := b.read(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	took, err := w(ctx, b)
	if err != nil {
		return err
	}
	wall := time.Since(began)
	after, err := b.read(ctx)
	if err != nil {
		return err
	}
	l := &line{
		Workload: name, Tag: b.o.tag, Profile: b.o.profile, Time: began.UTC(), Seconds: wall.Seconds(),
		CPU: map[string]float64{}, RSS: map[string]int64{},
	}
	total := 0.0
	for p, u := range after.processes {
		cpu := u.cpu - before.processes[p].cpu
		l.CPU[p], l.RSS[p] = cpu, u.rss
		total += cpu
	}
	if n := float64(len(took)); n > 0 {
		slices.Sort(took)
		l.Workflows, l.PerSecond = len(took), n/wall.Seconds()
		l.P50, l.P99 = millis(took[len(took)/2]), millis(took[len(took)*99/100])
		l.WallMS = millis(took[len(took)/2])
		l.CPUMillis = 1000 * total / n
		l.Messages = float64(after.messages-before.messages) / n
		l.Bytes = float64(after.bytes) / float64(max(after.workflows, 1))
		l.Disk = float64(after.disk-before.disk) / n
	} else {
		l.ReadyMS = millis(b.ready)
	}
	return l.print()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// reading is what is counted at one instant.
type reading struct {
	processes map[string]usage
	messages  uint64 // ever stored, by all streams
	bytes     uint64 // in the history streams
	workflows uint64 // subjects of the history streams
	disk      int64
}

func (b *bench) read(ctx context.Context) (*reading, error) {
	r := &reading{processes: map[string]usage{}, disk: diskUsage(b.store())}
	streams := b.client.Conn().JetStream().ListStreams(ctx)
	for s := range streams.Info() {
		r.messages += s.State.LastSeq
		if strings.Contains(s.Config.Name, "-history-") {
			r.bytes += s.State.Bytes
			r.workflows += s.State.NumSubjects
		}
	}
	if err := streams.Err(); err != nil {
		return nil, err
	}
	for name, pid := range b.pids() {
		u, err := usageOf(pid)
		if err != nil {
			return nil, err
		}
		r.processes[name] = u
	}
	return r, nil
}
